//! Errors as OpenAI's clients read them.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use halite_engine::EngineError;
use halite_engine::schedule::AdmissionError;
use halite_engine::text::TextError;
use serde_json::{Value, json};
use std::borrow::Cow;

/// The longest piece of a request that an error repeats, in characters.
const ECHO: usize = 100;
/// The longest message, in characters: a template's or the engine's own may be of any length.
const MESSAGE: usize = 2000;
/// When to try again, in seconds, if the queue is full or the model is not there yet.
const RETRY_AFTER: u32 = 1;

/// The `type` of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// `invalid_request_error`: the request has to change.
    InvalidRequest,
    /// `rate_limit_error`: the same request may work later.
    RateLimit,
    /// `server_error`: the request was fine.
    Server,
}

impl ErrorKind {
    /// As it is sent.
    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request_error",
            Self::RateLimit => "rate_limit_error",
            Self::Server => "server_error",
        }
    }
}

/// An answer that says why there is no other.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiError {
    /// The HTTP status.
    pub status: u16,
    /// Whose fault it is.
    pub kind: ErrorKind,
    /// For people.
    pub message: String,
    /// The parameter at fault, as a path: `messages[2].content`.
    pub param: Option<String>,
    /// For programs.
    pub code: Option<&'static str>,
    /// Seconds after which to try again.
    pub retry_after: Option<u32>,
}

impl ApiError {
    fn new(status: StatusCode, kind: ErrorKind, message: impl Into<String>) -> Self {
        let message = shortened(&message.into(), MESSAGE).into_owned();
        Self { status: status.as_u16(), kind, message, param: None, code: None, retry_after: None }
    }

    /// 400: the request makes no sense as a whole.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, ErrorKind::InvalidRequest, message)
    }

    /// 400: one parameter makes no sense.
    pub(super) fn parameter(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self { param: Some(param.into()), ..Self::invalid(message) }
    }

    /// 400: a parameter that is right elsewhere and would change the answer, had it an effect here.
    pub(super) fn unsupported(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self::parameter(param, message).code("unsupported_parameter")
    }

    /// Another refusal of the request.
    pub(super) fn refused(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self::new(status, ErrorKind::InvalidRequest, message).code(code)
    }

    /// 500: a fault of the server's own.
    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, ErrorKind::Server, message).code("internal_error")
    }

    /// 503: not now.
    pub(super) fn unavailable(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            retry_after: Some(RETRY_AFTER),
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, ErrorKind::Server, message).code(code)
        }
    }

    /// 503: the server is about to go.
    pub(super) fn stopping() -> Self {
        Self::unavailable("shutting_down", "the server is shutting down")
    }

    /// 503: the thread that computes is gone.
    pub(super) fn engine_gone() -> Self {
        Self::unavailable("engine_failed", "the engine has stopped after a fault; restart the server")
    }

    pub(super) fn code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    /// Names the parameter, unless a closer one is named already.
    pub(super) fn about(mut self, param: &str) -> Self {
        self.param.get_or_insert_with(|| param.to_owned());
        self
    }

    /// The body: `{"error": {"message", "type", "param", "code"}}`.
    pub fn body(&self) -> Value {
        json!({ "error": {
            "message": self.message,
            "type": self.kind.name(),
            "param": self.param,
            "code": self.code,
        }})
    }
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}: {}", self.status, self.kind.name(), self.message)
    }
}

impl std::error::Error for ApiError {}

impl From<&EngineError> for ApiError {
    fn from(error: &EngineError) -> Self {
        let message = error.to_string();
        match error {
            EngineError::Admission(AdmissionError::QueueFull { .. }) => Self {
                retry_after: Some(RETRY_AFTER),
                ..Self::new(StatusCode::TOO_MANY_REQUESTS, ErrorKind::RateLimit, message).code("queue_full")
            },
            EngineError::Admission(
                AdmissionError::PromptExceedsContext { .. } | AdmissionError::PromptExceedsKvCache { .. },
            ) => Self::invalid(message).code("context_length_exceeded"),
            EngineError::Admission(_) | EngineError::UnknownToken { .. } => Self::invalid(message),
            EngineError::NoChatTemplate => {
                Self::invalid("this model has no chat template; use /v1/completions with a plain prompt")
            }
            EngineError::Text(error) => match error {
                TextError::TemplateTooSlow { .. } => Self::unavailable("template_busy", message),
                TextError::TextTooLong { .. } => Self::invalid(message).code("context_length_exceeded"),
                TextError::StopStrings(_) => Self::parameter("stop", message),
                TextError::TemplateRefused { .. }
                | TextError::Template { .. }
                | TextError::TemplateOutOfFuel { .. }
                | TextError::TemplateOutputTooLong { .. }
                // A pattern that the tokenizer took, on a text that it takes too long for.
                | TextError::Pattern { .. }
                | TextError::Unencodable { .. } => Self::invalid(message),
                _ => Self::internal(message),
            },
            EngineError::Device(halite_hal::Error::Argument {
                operator: "logits", argument: "bias", ..
            }) => Self::parameter("logit_bias", format!("`logit_bias`: {message}")),
            // The engine checks sampling parameters by the kernels' own contract.
            EngineError::Device(halite_hal::Error::Argument { .. }) => Self::invalid(message),
            _ => Self::internal(message),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let json = [(header::CONTENT_TYPE, "application/json")];
        let mut response = (status, json, self.body().to_string()).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// What a client sent, quoted and cut to a length that is no burden to read or to send back.
pub(super) fn echo(text: &str) -> String {
    format!("{:?}", shortened(text, ECHO))
}

fn shortened(text: &str, characters: usize) -> Cow<'_, str> {
    match text.char_indices().nth(characters) {
        Some((end, _)) => Cow::Owned(format!("{}...", text.get(..end).unwrap_or_default())),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_repeated_is_cut_between_characters() {
        let echoed = echo(&"한".repeat(1_000_000));
        assert_eq!(echoed.chars().count(), ECHO + 5);
        assert!(echoed.ends_with("한...\""));
        assert_eq!(echo("a\n"), "\"a\\n\"");
        let error = ApiError::invalid("é".repeat(100_000));
        assert_eq!(error.message.chars().count(), MESSAGE + 3);
    }

    #[test]
    fn what_depends_on_the_clients_text_is_no_fault_of_the_server() {
        let second = std::time::Duration::from_secs(1);
        let word = || "x".to_owned();
        for (error, status) in [
            (TextError::Pattern { pattern: word(), reason: word() }, 400),
            (TextError::Unencodable { character: 'x', byte: 120 }, 400),
            (TextError::TextTooLong { found: 2, limit: 1 }, 400),
            (TextError::StopStrings(word()), 400),
            (TextError::TemplateRefused { message: word() }, 400),
            (TextError::Template { message: word() }, 400),
            (TextError::TemplateOutOfFuel { fuel: 1 }, 400),
            (TextError::TemplateOutputTooLong { limit: 1 }, 400),
            (TextError::TemplateTooSlow { limit: second }, 503),
            (TextError::Tokenizer(word()), 500),
        ] {
            let shown = error.to_string();
            assert_eq!(ApiError::from(&EngineError::Text(error)).status, status, "{shown}");
        }
    }

    #[test]
    fn the_body_has_openais_four_fields() {
        let error = ApiError::parameter("n", "n is 0").code("x").about("other");
        let expected = json!({ "error": {
            "message": "n is 0", "type": "invalid_request_error", "param": "n", "code": "x",
        }});
        assert_eq!(error.body(), expected);
    }
}
