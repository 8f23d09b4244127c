//! `POST /v1/completions`.

use super::{Generation, IGNORED};
use crate::serve::error::ApiError;
use crate::serve::fields::{Fields, string, wrong};
use crate::serve::limits::MAX_CHOICES;
use serde_json::{Value, json};

/// Prompts to continue.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CompletionRequest {
    /// The model's name.
    pub model: String,
    /// At least one.
    pub prompts: Vec<CompletionPrompt>,
    /// Whether each answer begins with its prompt.
    pub echo: bool,
    /// The answers.
    pub generation: Generation,
}

/// A prompt to continue; neither form is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompletionPrompt {
    /// As text.
    Text(String),
    /// As token ids, taken as they are.
    Tokens(Vec<u32>),
}

/// Parses and checks a body.
///
/// # Errors
/// An [`ApiError`] with the status 400 that names the first parameter at fault.
///
/// ```
/// use halite_server::serve::request::{CompletionPrompt, parse_completion};
///
/// let request = parse_completion(br#"{"model": "m", "prompt": [1, 2, 3]}"#)?;
/// assert_eq!(request.prompts, [CompletionPrompt::Tokens(vec![1, 2, 3])]);
/// let error = parse_completion(br#"{"model": "m", "prompt": ["a", 1]}"#).unwrap_err();
/// assert_eq!((error.status, error.param.as_deref()), (400, Some("prompt[1]")));
/// # Ok::<(), halite_server::serve::ApiError>(())
/// ```
pub fn parse_completion(bytes: &[u8]) -> Result<CompletionRequest, ApiError> {
    let mut fields = Fields::of_body(bytes)?;
    let model = fields.required_string("model")?;
    let prompts = prompts(fields.required("prompt")?)?;
    let echo = fields.boolean("echo")?.unwrap_or(false);
    let generation = Generation::take(&mut fields)?;
    let choices = prompts.len().saturating_mul(generation.n);
    if choices > MAX_CHOICES {
        let (count, n) = (prompts.len(), generation.n);
        let message = format!("{count} prompts with `n` = {n} are {choices} answers, at most {MAX_CHOICES}");
        return Err(ApiError::parameter(if n > 1 { "n" } else { "prompt" }, message));
    }
    fields.off("logprobs", &[])?;
    fields.off("suffix", &[json!("")])?;
    fields.off("best_of", &[json!(generation.n)])?;
    fields.ignore(&IGNORED);
    fields.done()?;
    Ok(CompletionRequest { model, prompts, echo, generation })
}

/// A text, token ids, or a list of either.
fn prompts(value: Value) -> Result<Vec<CompletionPrompt>, ApiError> {
    let values = match value {
        Value::String(text) => return Ok(vec![of_text(text, "prompt")?]),
        Value::Array(values) => values,
        other => {
            let expected = "a string, an array of token ids, or an array of either";
            return Err(wrong("prompt", expected, &other));
        }
    };
    if values.first().is_some_and(Value::is_number) {
        return Ok(vec![of_ids(&values, "prompt")?]);
    }
    match values.len() {
        0 => Err(ApiError::parameter("prompt", "`prompt` is empty; expected at least one prompt")),
        1..=MAX_CHOICES => {
            let numbered = values.into_iter().enumerate().map(|(index, value)| {
                let path = format!("prompt[{index}]");
                match value {
                    Value::Array(ids) => of_ids(&ids, &path),
                    other => of_text(string(other, &path)?, &path),
                }
            });
            numbered.collect()
        }
        found => {
            let message = format!("`prompt` has {found} prompts, at most {MAX_CHOICES}");
            Err(ApiError::parameter("prompt", message))
        }
    }
}

fn of_text(text: String, path: &str) -> Result<CompletionPrompt, ApiError> {
    if text.is_empty() {
        return Err(ApiError::parameter(path, format!("`{path}` is empty; there is nothing to continue")));
    }
    Ok(CompletionPrompt::Text(text))
}

fn of_ids(values: &[Value], path: &str) -> Result<CompletionPrompt, ApiError> {
    if values.is_empty() {
        return Err(ApiError::parameter(
            path,
            format!("`{path}` has no tokens; there is nothing to continue"),
        ));
    }
    let ids = values.iter().enumerate().map(|(index, value)| {
        let id = value.as_u64().and_then(|id| u32::try_from(id).ok());
        id.ok_or_else(|| wrong(&format!("{path}[{index}]"), "a token id", value))
    });
    Ok(CompletionPrompt::Tokens(ids.collect::<Result<_, _>>()?))
}
