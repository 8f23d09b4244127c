//! The texts of a job's answers while they come.

use super::error::ApiError;
use super::job::JobEvent;
use super::wire::Usage;
use halite_engine::FinishReason;
use halite_engine::text::{AnswerText, Tokenizer};

/// The answers of one job, in the order of its requests.
#[derive(Debug)]
pub(super) struct Answers {
    /// `None`: complete.
    texts: Vec<Option<AnswerText>>,
    /// Answers to each prompt.
    n: usize,
    usage: Usage,
}

/// What an event means for one answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Update {
    pub(super) choice: usize,
    /// Certain now; may be empty.
    pub(super) text: String,
    /// Set with the last piece: "stop" or "length".
    pub(super) finish_reason: Option<&'static str>,
}

impl Answers {
    /// Before the first token of `choices` answers, `n` to each prompt.
    pub(super) fn new(
        tokenizer: &Tokenizer,
        stop: &[String],
        choices: usize,
        n: usize,
    ) -> Result<Self, ApiError> {
        let text = AnswerText::new(tokenizer, stop)
            .map_err(|error| ApiError::parameter("stop", error.to_string()))?;
        Ok(Self { texts: vec![Some(text); choices], n: n.max(1), usage: Usage::default() })
    }

    /// Takes the next event.
    pub(super) fn take(&mut self, event: JobEvent) -> Result<Update, ApiError> {
        match event {
            JobEvent::Token { choice, token } => {
                let text = self.texts.get_mut(choice).and_then(Option::as_mut);
                let text = text.and_then(|text| text.push(token).ok()).unwrap_or_default();
                Ok(Update { choice, text, finish_reason: None })
            }
            JobEvent::Finished { choice, finished } => {
                self.usage.completion_tokens += finished.generated.len();
                // A prompt counts once, however many answers it has.
                if choice % self.n == 0 {
                    self.usage.prompt_tokens += finished.prompt_tokens;
                    self.usage.prompt_tokens_details.cached_tokens += finished.cached_tokens;
                }
                self.usage.total_tokens = self.usage.prompt_tokens + self.usage.completion_tokens;
                let finish_reason = match finished.reason {
                    FinishReason::Length => "length",
                    FinishReason::Stop => "stop",
                    _ => return Err(ApiError::internal("the answer ended before it was complete")),
                };
                let rest = self.texts.get_mut(choice).and_then(Option::take);
                let text = rest.map(AnswerText::finish).unwrap_or_default();
                Ok(Update { choice, text, finish_reason: Some(finish_reason) })
            }
            JobEvent::Failed(error) => Err(error),
        }
    }

    /// Whether every answer is complete.
    pub(super) fn are_complete(&self) -> bool {
        self.texts.iter().all(Option::is_none)
    }

    /// What was counted so far; all of it once the answers are complete.
    pub(super) fn usage(&self) -> Usage {
        self.usage
    }
}
