//! From a conversation to token ids, without letting its text pose as control tokens.
//!
//! A template mixes its own control tokens with text from outside in one string, so the string alone does not tell
//! them apart. Here a character that occurs nowhere else is put inside everything in the conversation that looks
//! like a special token, before the template runs. The template's own tokens are then the only ones that match;
//! afterwards the character is taken out again.

use std::borrow::Cow;

use serde_json::Value;

use super::chat_input::ChatInput;
use super::chat_template::ChatTemplate;
use super::error::TextError;
use super::special_token::{Matching, SpecialToken, is_space};
use super::special_tokens::SpecialTable;
use super::tokenizer::Tokenizer;
use super::vocabulary::TokenKind;

/// Lays out a conversation and encodes it as a prompt, begin-of-sequence token included where the model wants one.
///
/// Control tokens come from the template only. What the conversation (roles, contents, names, tool calls and tools)
/// writes like one is encoded as ordinary characters. User-defined tokens, such as the marks round a train of
/// thought, are recognised in the assistant's messages, as templates look for them there, and nowhere else; but those
/// that are text like any other (white space, and pieces of a `tokenizer.json`'s vocabulary that the template does not
/// mention) are recognised everywhere.
///
/// # Errors
/// As [`ChatTemplate::render`] and [`Tokenizer::encode`].
pub fn encode_chat(
    tokenizer: &Tokenizer,
    template: &ChatTemplate,
    input: &ChatInput,
) -> Result<Vec<u32>, TextError> {
    let template = template.of(input);
    let special = tokenizer.special();
    let mark = unused_mark(template, input)?;
    let mut guarded = input.clone();
    for message in &mut guarded.messages {
        let assistant = message.role == "assistant";
        let guard = Guard { tokenizer, template: template.source(), special, mark, assistant };
        guard.text(&mut message.role)?;
        guard.value(&mut message.content)?;
        message.fields.iter_mut().try_for_each(|(_, value)| guard.value(value))?;
    }
    let guard = Guard { tokenizer, template: template.source(), special, mark, assistant: false };
    guarded.tools.iter_mut().try_for_each(|tools| guard.value(tools))?;
    guarded.variables.iter_mut().try_for_each(|(_, value)| guard.value(value))?;

    tokenizer.encode_chat(&template.render(&guarded)?, mark)
}

struct Guard<'t> {
    tokenizer: &'t Tokenizer,
    template: &'t str,
    special: &'t SpecialTable,
    mark: char,
    assistant: bool,
}

impl Guard<'_> {
    fn covers(&self, token: &SpecialToken) -> bool {
        // Some vocabularies have user-defined tokens for ordinary text: runs of white space, or Gemma's HTML tags.
        let is_text = || is_space(&token.text) || (token.is_piece && !self.template.contains(&*token.text));
        token.kind == TokenKind::Control || (!self.assistant && !is_text())
    }

    fn value(&self, value: &mut Value) -> Result<(), TextError> {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(items) => items.iter_mut().try_for_each(|item| self.value(item)),
            Value::Object(fields) => {
                // Keys are written out too, by `tojson`.
                for (mut key, mut field) in std::mem::take(fields) {
                    self.text(&mut key)?;
                    self.value(&mut field)?;
                    fields.insert(key, field);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn text(&self, text: &mut String) -> Result<(), TextError> {
        if let Cow::Owned(guarded) = self.guarded(text) {
            *text = guarded;
        }
        if self.special.has(Matching::Normalized) {
            self.guard_normalised(text)?;
        }
        Ok(())
    }

    /// The same for tokens that are found in normalised text, which something else than their own spelling may become.
    fn guard_normalised(&self, text: &mut String) -> Result<(), TextError> {
        let (whole, beginning) = self.normalises_to_special(text)?;
        if whole {
            // No two characters stay together.
            *text = text.chars().filter(|&c| c != self.mark).flat_map(|c| [c, self.mark]).collect();
        } else if beginning {
            text.push(self.mark);
        }
        if (whole || beginning) && self.normalises_to_special(text)? != (false, false) {
            let message = "the tokenizer's normalizer turns a message into control tokens".to_owned();
            return Err(TextError::Template { message });
        }
        Ok(())
    }

    /// Whether a special token, and whether a beginning of one at the end, is in the text once it is normalised.
    fn normalises_to_special(&self, text: &str) -> Result<(bool, bool), TextError> {
        let normal = self.tokenizer.normalised(text)?;
        let found = self.special.find(&normal, Matching::Normalized);
        let whole = found.iter().filter_map(|stretch| stretch.token).any(|token| self.covers(token));
        Ok((whole, self.special.ends_with_beginning(&normal, |token| self.covers(token))))
    }

    /// `text` with the mark after the first character of every special token in it, and of a beginning of one at its
    /// end, which the template's next text might complete.
    fn guarded<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let tail = text.len().saturating_sub(self.special.longest());
        let mut guarded: Option<String> = None;
        let mut copied = 0;
        for (at, c) in text.char_indices() {
            let rest = &text[at..];
            let is_token = self.special.at_start(rest).is_some_and(|token| self.covers(token));
            if is_token || (at >= tail && self.special.is_beginning_of_one(rest, |token| self.covers(token)))
            {
                let after = at + c.len_utf8();
                let out = guarded.get_or_insert_with(String::new);
                out.push_str(&text[copied..after]);
                out.push(self.mark);
                copied = after;
            }
        }
        match guarded {
            Some(out) => Cow::Owned(out + &text[copied..]),
            None => Cow::Borrowed(text),
        }
    }
}

/// A Unicode noncharacter that neither the template nor the conversation contains.
fn unused_mark(template: &ChatTemplate, input: &ChatInput) -> Result<char, TextError> {
    let mut marks: Vec<char> = ('\u{FDD0}'..='\u{FDEF}').collect();
    let mut drop_used = |text: &str| {
        // All of them begin with the same byte, which few texts have.
        if text.as_bytes().contains(&0xEF) {
            marks.retain(|mark| !text.contains(*mark));
        }
    };
    drop_used(template.source());
    drop_used(&input.bos_token);
    drop_used(&input.eos_token);
    for message in &input.messages {
        drop_used(&message.role);
        each_text(&message.content, &mut drop_used);
        message.fields.iter().for_each(|(key, value)| {
            drop_used(key);
            each_text(value, &mut drop_used);
        });
    }
    input.tools.iter().for_each(|tools| each_text(tools, &mut drop_used));
    input.variables.values().for_each(|value| each_text(value, &mut drop_used));
    let message = "the messages contain all of the noncharacters U+FDD0 to U+FDEF; remove them".to_owned();
    marks.first().copied().ok_or(TextError::Template { message })
}

fn each_text(value: &Value, then: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => then(text),
        Value::Array(items) => items.iter().for_each(|item| each_text(item, then)),
        Value::Object(fields) => fields.iter().for_each(|(key, field)| {
            then(key);
            each_text(field, then);
        }),
        _ => {}
    }
}
