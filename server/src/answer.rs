//! One answer, piece by piece, until it is complete or nobody wants more of it.

use anyhow::bail;
use halite_engine::text::AnswerText;
use halite_engine::{Engine, Event, FinishReason, Finished, Request};
use std::time::{Duration, Instant};

/// An answer that ended, and how long it took.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// Its tokens, and why it ended; [`FinishReason::Cancelled`] if it was interrupted.
    pub(crate) finished: Finished,
    /// From the request to the first token; `None`: there was no token.
    pub(crate) time_to_first_token: Option<Duration>,
    /// From the request to the end.
    pub(crate) elapsed: Duration,
}

impl Answer {
    /// Prompt tokens computed a second, up to the first token.
    pub(crate) fn prompt_tokens_per_s(&self) -> Option<f64> {
        let computed = self.finished.prompt_tokens.saturating_sub(self.finished.cached_tokens);
        // An answer that a stop token ended at once took as long as the prompt did.
        let took = match self.finished.reason {
            FinishReason::Stop => self.time_to_first_token.unwrap_or(self.elapsed),
            _ => self.time_to_first_token?,
        };
        per_second(computed, took)
    }

    /// Tokens after the first, a second; `None` for fewer than two.
    pub(crate) fn generated_tokens_per_s(&self) -> Option<f64> {
        let after_first = self.finished.generated.len().checked_sub(1).filter(|&tokens| tokens > 0)?;
        per_second(after_first, self.elapsed.checked_sub(self.time_to_first_token?)?)
    }
}

pub(crate) fn per_second(count: usize, took: Duration) -> Option<f64> {
    (!took.is_zero()).then(|| count as f64 / took.as_secs_f64())
}

/// Answers a request and hands over its text as it becomes certain. `interrupted` is asked before each step.
pub(crate) fn stream(
    engine: &mut Engine,
    request: Request,
    interrupted: &dyn Fn() -> bool,
    deliver: &mut dyn FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<Answer> {
    let mut text = AnswerText::new(engine.tokenizer(), &request.stop_strings)?;
    let mut deliver = |text: &str| if text.is_empty() { Ok(()) } else { deliver(text) };
    let started = Instant::now();
    let mut time_to_first_token = None;
    let id = engine.add(request)?;
    let finished = 'steps: loop {
        if interrupted()
            && let Some(finished) = engine.cancel(id)
        {
            break finished;
        }
        for event in engine.step()? {
            match event {
                Event::Token { token, .. } => {
                    time_to_first_token.get_or_insert_with(|| started.elapsed());
                    deliver(&text.push(token)?)?;
                }
                Event::Finished(finished) => break 'steps finished,
                _ => {}
            }
        }
        if engine.is_idle() {
            bail!("the engine stopped before the answer was complete");
        }
    };
    let elapsed = started.elapsed();
    deliver(&text.finish())?;
    if let FinishReason::Error(message) = &finished.reason {
        bail!("the answer could not be computed: {message}");
    }
    Ok(Answer { finished, time_to_first_token, elapsed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_over_no_time_is_no_rate() {
        assert_eq!(per_second(5, Duration::ZERO), None);
        assert_eq!(per_second(5, Duration::from_millis(500)), Some(10.0));
    }
}
