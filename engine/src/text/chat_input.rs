//! What a chat template lays out: a conversation and what goes with it.

use std::time::SystemTime;

use minijinja::value::{Serde, Value};
use serde::Serialize;
use serde_json::Map;

use super::template_functions;

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ChatMessage {
    /// Who speaks: "system", "user", "assistant", "tool", or what else the template knows.
    pub role: String,
    /// What is said: a string, or a list of parts where the template supports them. Null (in a message that only calls
    /// tools) is none for a template that asks whether it is, and an empty text for others.
    pub content: serde_json::Value,
    /// Further fields such as `name` or `tool_calls`.
    #[serde(flatten)]
    pub fields: Map<String, serde_json::Value>,
}

impl ChatMessage {
    /// A message of text.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self { role: role.into(), content: serde_json::Value::String(content.into()), fields: Map::new() }
    }

    /// The message as `transformers` shows it to a template: fields that are null are left out, and a train of
    /// thought has the name `reasoning_content` under whichever name it came.
    fn for_template(&self, knows_null: bool) -> Self {
        let mut message = self.clone();
        if message.content.is_null() && !knows_null {
            message.content = serde_json::Value::String(String::new());
        }
        message.fields.retain(|_, value| !value.is_null());
        let names = ["reasoning_content", "thinking", "reasoning"];
        if let Some(reasoning) = names.iter().find_map(|name| message.fields.get(*name)).cloned() {
            message.fields.entry("thinking").or_insert_with(|| reasoning.clone());
            message.fields.insert("reasoning_content".into(), reasoning);
        }
        message
    }
}

/// What a template sees, under the names the `transformers` package uses.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ChatInput {
    /// The conversation, oldest first.
    pub messages: Vec<ChatMessage>,
    /// Whether to end with the beginning of the assistant's next message.
    pub add_generation_prompt: bool,
    /// Text of the begin-of-sequence token.
    pub bos_token: String,
    /// Text of the end-of-sequence token.
    pub eos_token: String,
    /// Definitions of the tools the model may call, as JSON.
    pub tools: Option<serde_json::Value>,
    /// Further variables, such as `enable_thinking`.
    pub variables: Map<String, serde_json::Value>,
    /// The time for `strftime_now` (in UTC); templates see no such function if it is `None`.
    pub now: Option<SystemTime>,
}

impl ChatInput {
    /// The conversation, with the assistant to speak next.
    pub fn new(messages: Vec<ChatMessage>) -> Self {
        Self { messages, add_generation_prompt: true, ..Self::default() }
    }

    /// The same as the template engine takes it. `knows_null`: whether the template asks for a content that is null.
    pub(crate) fn context(&self, knows_null: bool) -> Value {
        let mut context = self.variables.clone();
        let text = |text: &String| serde_json::Value::String(text.clone());
        context.insert("bos_token".into(), text(&self.bos_token));
        context.insert("eos_token".into(), text(&self.eos_token));
        context.insert("add_generation_prompt".into(), self.add_generation_prompt.into());
        context.insert("tools".into(), self.tools.clone().unwrap_or_default());
        let messages: Vec<ChatMessage> =
            self.messages.iter().map(|message| message.for_template(knows_null)).collect();
        let messages = ("messages".to_owned(), Value::from(Serde(&messages)));
        let now = self.now.map(|now| ("strftime_now".to_owned(), template_functions::strftime_now(now)));
        let variables = context.iter().map(|(name, value)| (name.clone(), Value::from(Serde(value))));
        Value::from_pairs(variables.chain([messages]).chain(now))
    }
}
