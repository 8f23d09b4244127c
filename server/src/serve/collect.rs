//! A response in one piece.

use super::answers::Answers;
use super::error::ApiError;
use super::job::Job;
use super::request_log::RequestLog;
use super::wire::Envelope;
use axum::Json;
use axum::response::{IntoResponse, Response};

/// Waits for every answer.
pub(super) async fn respond(
    mut job: Job,
    mut answers: Answers,
    envelope: &Envelope,
    echoes: Vec<String>,
    choices: usize,
    log: &RequestLog,
) -> Result<Response, ApiError> {
    let mut texts = echoes;
    texts.resize(choices, String::new());
    let mut reasons = vec![""; choices];
    while !answers.are_complete() {
        let update = answers.take(job.next().await)?;
        if let (Some(text), Some(reason)) = (texts.get_mut(update.choice), reasons.get_mut(update.choice)) {
            text.push_str(&update.text);
            *reason = update.finish_reason.unwrap_or_default();
        }
    }
    log.counted(answers.usage());
    let numbered = texts.iter().zip(reasons).enumerate();
    let choices = numbered.map(|(index, (text, reason))| envelope.choice(index, text, reason)).collect();
    Ok(Json(envelope.response(choices, answers.usage())).into_response())
}
