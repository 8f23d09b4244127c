//! The messages of a conversation.

use super::tools::tool_calls;
use crate::serve::error::{ApiError, echo};
use crate::serve::fields::{Fields, wrong};
use crate::serve::limits::MAX_MESSAGES;
use halite_engine::text::ChatMessage;
use serde_json::Value;

const ROLES: [&str; 5] = ["system", "developer", "user", "assistant", "tool"];

pub(super) fn messages(value: Value) -> Result<Vec<ChatMessage>, ApiError> {
    let Value::Array(values) = value else {
        return Err(wrong("messages", "an array of messages", &value));
    };
    match values.len() {
        0 => Err(ApiError::parameter("messages", "`messages` is empty; expected at least one message")),
        1..=MAX_MESSAGES => {
            let numbered = values.into_iter().enumerate();
            numbered.map(|(index, value)| message(value, &format!("messages[{index}]"))).collect()
        }
        found => {
            let message = format!("`messages` has {found} messages, at most {MAX_MESSAGES}");
            Err(ApiError::parameter("messages", message))
        }
    }
}

fn message(value: Value, path: &str) -> Result<ChatMessage, ApiError> {
    let mut fields = Fields::of(value, path)?;
    let role = fields.required_string("role")?;
    if !ROLES.contains(&&*role) {
        let (path, roles) = (fields.path("role"), ROLES.join(", "));
        let message = format!("`{path}` is {}; expected one of {roles}", echo(&role));
        return Err(ApiError::parameter(path, message));
    }
    let mut message = ChatMessage::new(&*role, "");
    let mut calls = false;
    match &*role {
        "assistant" => {
            if let Some(value) = fields.take("tool_calls") {
                let value = tool_calls(value, &fields.path("tool_calls"))?;
                calls = true;
                message.fields.insert("tool_calls".to_owned(), value);
            }
            if let Some(text) = fields.string("reasoning_content")? {
                message.fields.insert("reasoning_content".to_owned(), text.into());
            }
            fields.off("audio", &[])?;
            fields.off("function_call", &[])?;
            fields.ignore(&["annotations"]);
        }
        "tool" => {
            let id = fields.required_string("tool_call_id")?;
            message.fields.insert("tool_call_id".to_owned(), id.into());
        }
        _ => {}
    }
    if let Some(name) = fields.string("name")? {
        message.fields.insert("name".to_owned(), name.into());
    }
    let refusal = if role == "assistant" { fields.string("refusal")? } else { None };
    message.content = match (fields.take("content"), refusal) {
        (Some(value), _) => content(value, &fields.path("content"), &role)?.into(),
        (None, Some(refusal)) => refusal.into(),
        // Templates print a null as a word, or fail.
        (None, None) if calls => "".into(),
        (None, None) => fields.required("content")?,
    };
    fields.done()?;
    Ok(message)
}

/// A text, whole or in parts; parts stand on lines of their own.
fn content(value: Value, path: &str, role: &str) -> Result<String, ApiError> {
    let parts = match value {
        Value::String(text) => return Ok(text),
        Value::Array(parts) if !parts.is_empty() => parts,
        other => return Err(wrong(path, "a string or an array of text parts", &other)),
    };
    let texts = parts.into_iter().enumerate().map(|(index, value)| {
        let path = format!("{path}[{index}]");
        let mut part = Fields::of(value, &path)?;
        let kind = part.required_string("type")?;
        let text = match &*kind {
            "text" => part.required_string("text")?,
            "refusal" if role == "assistant" => part.required_string("refusal")?,
            _ => {
                let message = format!("`{path}` has the type {}; this model takes text only", echo(&kind));
                return Err(ApiError::unsupported(path, message));
            }
        };
        part.done()?;
        Ok(text)
    });
    Ok(texts.collect::<Result<Vec<_>, _>>()?.join("\n"))
}
