//! One request from beginning to end.

use super::{Engine, Event, Request, RequestId};
use crate::schedule::{FinishReason, Finished};
use crate::text::AnswerText;
use crate::{EngineError, Result};
use std::time::{Duration, Instant};

/// An answer, and how long it took.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Generation {
    /// The answer's text, without control tokens and up to the first stop string.
    pub text: String,
    /// Its tokens, why it ended, and what the scheduler counted.
    pub finished: Finished,
    /// From the request to the first token.
    pub time_to_first_token: Duration,
    /// From the request to the end.
    pub elapsed: Duration,
}

impl Generation {
    /// Prompt tokens that were computed, a second. Those found in the cache do not count.
    pub fn prompt_tokens_per_s(&self) -> f64 {
        let computed = self.finished.prompt_tokens - self.finished.cached_tokens;
        computed as f64 / self.time_to_first_token.as_secs_f64()
    }

    /// Tokens after the first, a second; `None` for answers of one token.
    pub fn generated_tokens_per_s(&self) -> Option<f64> {
        let after_first = self.finished.generated.len().checked_sub(1).filter(|&tokens| tokens > 0)?;
        Some(after_first as f64 / (self.elapsed - self.time_to_first_token).as_secs_f64())
    }
}

impl Engine {
    /// Answers one request, handing over the text as it becomes certain: a piece never ends inside a character
    /// or a stop string, and the pieces put together are [`Generation::text`]. Other requests go on meanwhile; their events wait.
    ///
    /// # Errors
    /// As [`Engine::add`]; [`EngineError::Unanswered`] where the device failed.
    pub fn generate(&mut self, request: Request, delta: &mut dyn FnMut(&str)) -> Result<Generation> {
        let started = Instant::now();
        let certain = AnswerText::new(self.tokenizer(), &request.stop_strings)?;
        let mut answer = Answer { certain, text: String::new(), first_token: None };
        let id = self.add(request)?;
        let finished = match self.follow(id, &mut answer, started, delta) {
            Ok(finished) => finished,
            Err(error) => {
                self.cancel(id);
                return Err(error);
            }
        };
        let rest = answer.certain.finish();
        if !rest.is_empty() {
            delta(&rest);
            answer.text.push_str(&rest);
        }
        if let FinishReason::Error(message) = &finished.reason {
            return Err(EngineError::Unanswered(message.clone()));
        }
        let elapsed = started.elapsed();
        // An answer that a stop token ended at once has no first token.
        let time_to_first_token = answer.first_token.unwrap_or(elapsed);
        Ok(Generation { text: answer.text, finished, time_to_first_token, elapsed })
    }

    fn follow(
        &mut self,
        id: RequestId,
        answer: &mut Answer,
        started: Instant,
        delta: &mut dyn FnMut(&str),
    ) -> Result<Finished> {
        loop {
            for event in self.advance_for(id)? {
                match event {
                    Event::Token { token, .. } => {
                        answer.first_token.get_or_insert_with(|| started.elapsed());
                        let piece = answer.certain.push(token)?;
                        if !piece.is_empty() {
                            delta(&piece);
                            answer.text.push_str(&piece);
                        }
                    }
                    Event::Finished(finished) => return Ok(finished),
                }
            }
            if self.scheduler.status(id).is_none() {
                return Err(EngineError::Unanswered("it ended without a word".to_owned()));
            }
        }
    }
}

/// An answer on its way.
struct Answer {
    certain: AnswerText,
    text: String,
    first_token: Option<Duration>,
}
