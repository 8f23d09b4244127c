//! A response as server-sent events.

use super::answers::{Answers, Update};
use super::error::ApiError;
use super::job::Job;
use super::request::StreamOptions;
use super::request_log::RequestLog;
use super::wire::{Envelope, Usage};
use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use std::convert::Infallible;
use std::fmt::Write;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Interval, interval_at};
use tokio_stream::Stream;

/// Between two signs of life while no token comes: proxies give up on silent connections.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Events that are there already go out together, up to this many bytes.
const FULL: usize = 16 << 10;

/// The response to a request that was admitted.
pub(super) fn respond(
    job: Job,
    answers: Answers,
    envelope: Envelope,
    echoes: &[String],
    choices: usize,
    options: StreamOptions,
    log: Arc<RequestLog>,
) -> Response {
    let mut events = EventStream {
        job: Some(job),
        answers,
        envelope,
        include_usage: options.include_usage,
        ready: String::new(),
        keep_alive: interval_at(Instant::now() + KEEP_ALIVE, KEEP_ALIVE),
        log,
    };
    events.log.streams();
    for index in 0..choices {
        if let Some(opening) = events.envelope.opening(index) {
            events.chunk(opening);
        }
        if let Some(text) = echoes.get(index) {
            events.chunk(events.envelope.delta(index, text));
        }
    }
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache"),
        // nginx would collect the events otherwise.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(events)).into_response()
}

struct EventStream {
    /// `None`: nothing more comes.
    job: Option<Job>,
    answers: Answers,
    envelope: Envelope,
    include_usage: bool,
    /// Written and not yet sent.
    ready: String,
    keep_alive: Interval,
    log: Arc<RequestLog>,
}

impl EventStream {
    fn chunk(&mut self, choice: Value) {
        let usage = self.include_usage.then_some(None);
        self.data(&self.envelope.chunk(vec![choice], usage));
    }

    fn data(&mut self, value: &dyn std::fmt::Display) {
        // JSON in one line. Writing to a String does not fail.
        _ = write!(self.ready, "data: {value}\n\n");
    }

    fn update(&mut self, update: Update) {
        let Update { choice, text, finish_reason } = update;
        if !text.is_empty() {
            self.chunk(self.envelope.delta(choice, &text));
        }
        if let Some(reason) = finish_reason {
            self.chunk(self.envelope.ending(choice, reason));
        }
        if self.answers.are_complete() {
            self.end(self.answers.usage());
        }
    }

    fn end(&mut self, usage: Usage) {
        if self.include_usage {
            self.data(&self.envelope.chunk(Vec::new(), Some(Some(usage))));
        }
        self.data(&"[DONE]");
        self.log.counted(usage);
        self.job = None;
    }

    fn fail(&mut self, error: &ApiError) {
        self.ready.push_str("event: error\n");
        self.data(&error.body());
        self.log.failed(error);
        self.job = None;
    }
}

impl Stream for EventStream {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        while this.ready.len() < FULL
            && let Some(job) = &mut this.job
        {
            let Poll::Ready(event) = job.poll_next(context) else { break };
            match this.answers.take(event) {
                Ok(update) => this.update(update),
                Err(error) => this.fail(&error),
            }
        }
        if !this.ready.is_empty() {
            this.keep_alive.reset();
            return Poll::Ready(Some(Ok(std::mem::take(&mut this.ready).into())));
        }
        if this.job.is_none() {
            return Poll::Ready(None);
        }
        this.keep_alive.poll_tick(context).map(|_| Some(Ok(Bytes::from_static(b": still here\n\n"))))
    }
}
