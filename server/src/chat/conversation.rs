//! A conversation, and what of it is forgotten when it outgrows the context.

use halite_engine::text::ChatMessage;
use serde_json::{Value, json};
use std::collections::VecDeque;

/// A system message and turns, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conversation {
    system: Option<String>,
    exchanges: VecDeque<Exchange>,
}

#[derive(Clone, Debug)]
struct Exchange {
    said: String,
    /// `None`: not answered yet.
    answer: Option<String>,
}

impl Conversation {
    pub(crate) fn new(system: Option<String>) -> Self {
        Self { system, exchanges: VecDeque::new() }
    }

    pub(crate) fn set_system(&mut self, text: &str) {
        self.system = (!text.is_empty()).then(|| text.to_owned());
    }

    /// Forgets the turns.
    pub(crate) fn reset(&mut self) {
        self.exchanges.clear();
    }

    /// A message that wants an answer.
    pub(crate) fn say(&mut self, text: &str) {
        self.exchanges.push_back(Exchange { said: text.to_owned(), answer: None });
    }

    /// The answer to the last message.
    pub(crate) fn answer(&mut self, text: String) {
        if let Some(last) = self.exchanges.back_mut() {
            last.answer = Some(text);
        }
    }

    /// Takes the last answer back and returns it; `None` if nothing was said yet.
    pub(crate) fn retry(&mut self) -> Option<String> {
        self.exchanges.back_mut().map(|last| last.answer.take().unwrap_or_default())
    }

    /// Takes the last message back, as it could not be answered.
    pub(crate) fn unsay(&mut self) {
        self.exchanges.pop_back();
    }

    /// Forgets the oldest turn; false if there is only the last one left.
    pub(crate) fn forget_oldest(&mut self) -> bool {
        self.exchanges.len() > 1 && self.exchanges.pop_front().is_some()
    }

    /// Turns that are remembered.
    pub(crate) fn len(&self) -> usize {
        self.exchanges.len()
    }

    /// As the template takes it.
    pub(crate) fn messages(&self) -> Vec<ChatMessage> {
        self.each().map(|(role, text)| ChatMessage::new(role, text)).collect()
    }

    /// As OpenAI's interface takes it.
    pub(crate) fn json(&self) -> Value {
        self.each().map(|(role, text)| json!({ "role": role, "content": text })).collect()
    }

    fn each(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let turns = self.exchanges.iter().flat_map(|exchange| {
            let answer = exchange.answer.as_deref().map(|text| ("assistant", text));
            std::iter::once(("user", &*exchange.said)).chain(answer)
        });
        self.system.as_deref().map(|text| ("system", text)).into_iter().chain(turns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(conversation: &Conversation) -> String {
        let each = conversation.each().map(|(role, text)| format!("{} {text}", &role[..1]));
        each.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn turns_come_and_go_in_pairs() {
        let mut talk = Conversation::new(Some("S".to_owned()));
        assert_eq!(talk.retry(), None);
        for text in ["1", "2", "3"] {
            talk.say(text);
            talk.answer(format!("a{text}"));
        }
        talk.say("4");
        assert_eq!(shown(&talk), "s S, u 1, a a1, u 2, a a2, u 3, a a3, u 4");
        assert!(talk.forget_oldest() && talk.forget_oldest());
        assert_eq!(shown(&talk), "s S, u 3, a a3, u 4");
        talk.unsay();
        assert_eq!(talk.retry().as_deref(), Some("a3"));
        talk.set_system("");
        assert_eq!(shown(&talk), "u 3");
        assert!(!talk.forget_oldest());
        talk.reset();
        assert_eq!((shown(&talk), talk.len()), (String::new(), 0));
    }
}
