//! One line of log a request, without a word of what was asked or answered.

use super::error::ApiError;
use super::wire::Usage;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The longest path that is logged, in characters.
const PATH: usize = 100;

/// What is known of a request; written when the last of those who serve it drops it.
#[derive(Debug)]
pub(super) struct RequestLog {
    method: String,
    path: String,
    started: Instant,
    outcome: Mutex<Outcome>,
}

#[derive(Debug, Default)]
struct Outcome {
    status: Option<u16>,
    /// Whether a stream goes on after its head.
    open: bool,
    usage: Option<Usage>,
    error: Option<&'static str>,
}

impl RequestLog {
    fn of(request: &Request) -> Self {
        Self {
            method: request.method().as_str().chars().take(PATH).collect(),
            // Without the query, which is no part of any request here.
            path: request.uri().path().chars().take(PATH).collect(),
            started: Instant::now(),
            outcome: Mutex::default(),
        }
    }

    /// A stream has begun.
    pub(super) fn streams(&self) {
        self.note(|outcome| outcome.open = true);
    }

    /// All answers are complete.
    pub(super) fn counted(&self, usage: Usage) {
        self.note(|outcome| (outcome.usage, outcome.open) = (Some(usage), false));
    }

    /// An error was sent inside a stream.
    pub(super) fn failed(&self, error: &ApiError) {
        self.note(|outcome| (outcome.error, outcome.open) = (error.code.or(Some("error")), false));
    }

    fn note(&self, note: impl FnOnce(&mut Outcome)) {
        note(&mut self.outcome.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Logs every request that passes.
pub(super) async fn log(mut request: Request, next: Next) -> Response {
    let log = Arc::new(RequestLog::of(&request));
    request.extensions_mut().insert(Arc::clone(&log));
    let response = next.run(request).await;
    log.note(|outcome| outcome.status = Some(response.status().as_u16()));
    response
}

impl Drop for RequestLog {
    fn drop(&mut self) {
        let outcome = self.outcome.get_mut().unwrap_or_else(PoisonError::into_inner);
        let usage = outcome.usage.unwrap_or_default();
        let ended = match (outcome.status, outcome.error) {
            (None, _) => "client left",
            (_, Some(error)) => error,
            (Some(_), None) if outcome.open => "client left",
            _ => "complete",
        };
        tracing::info!(
            method = %self.method.escape_debug(),
            path = %self.path.escape_debug(),
            status = outcome.status.unwrap_or_default(),
            ms = self.started.elapsed().as_millis() as u64,
            prompt_tokens = usage.prompt_tokens,
            cached_tokens = usage.prompt_tokens_details.cached_tokens,
            completion_tokens = usage.completion_tokens,
            "{ended}"
        );
    }
}
