//! `POST /v1/chat/completions`.

use super::message::messages;
use super::tools::tools;
use super::{Generation, IGNORED};
use crate::serve::error::ApiError;
use crate::serve::fields::{Fields, wrong};
use halite_engine::text::ChatMessage;
use serde_json::{Map, Value, json};

/// A conversation to answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ChatRequest {
    /// The model's name.
    pub model: String,
    /// The conversation, oldest first; at least one message. Contents are text.
    pub messages: Vec<ChatMessage>,
    /// Tools for the template; `None` where there are none, or `tool_choice` is "none".
    pub tools: Option<Value>,
    /// Further variables for the template (`chat_template_kwargs`).
    pub variables: Map<String, Value>,
    /// The answer.
    pub generation: Generation,
}

/// Parses and checks a body.
///
/// # Errors
/// An [`ApiError`] with the status 400 that names the first parameter at fault.
///
/// ```
/// use halite_server::serve::request::parse_chat;
///
/// let request = parse_chat(br#"{"model": "m", "messages": [{"role": "user", "content": "hi"}], "n": 2}"#)?;
/// assert_eq!((request.messages.len(), request.generation.n), (1, 2));
/// let error = parse_chat(br#"{"model": "m", "messages": []}"#).unwrap_err();
/// assert_eq!((error.status, error.param.as_deref()), (400, Some("messages")));
/// # Ok::<(), halite_server::serve::ApiError>(())
/// ```
pub fn parse_chat(bytes: &[u8]) -> Result<ChatRequest, ApiError> {
    let mut fields = Fields::of_body(bytes)?;
    let model = fields.required_string("model")?;
    let messages = messages(fields.required("messages")?)?;
    let tools = tools(&mut fields)?;
    let variables = match fields.take("chat_template_kwargs") {
        None => Map::new(),
        Some(Value::Object(variables)) => variables,
        Some(other) => return Err(wrong("chat_template_kwargs", "an object", &other)),
    };
    let generation = Generation::take(&mut fields)?;
    fields.off("response_format", &[json!({ "type": "text" })])?;
    fields.off("modalities", &[json!(["text"])])?;
    fields.off("logprobs", &[json!(false)])?;
    for name in [
        "top_logprobs",
        "audio",
        "web_search_options",
        "reasoning_effort",
        "verbosity",
        "functions",
        "function_call",
    ] {
        fields.off(name, &[])?;
    }
    fields.ignore(&IGNORED);
    // It may make an answer come sooner, never another one.
    fields.ignore(&["prediction"]);
    fields.done()?;
    Ok(ChatRequest { model, messages, tools, variables, generation })
}
