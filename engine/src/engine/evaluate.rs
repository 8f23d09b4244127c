//! Looking inside a model: the likelihood of given tokens, and logits.

use super::{Active, Engine, Event, Request, RequestId, probe::Probe};
use crate::schedule::{AdmissionError, FinishReason};
use crate::{EngineError, Result};

impl Engine {
    /// The negative log-likelihood, natural, of each of `tokens[1..]` after those before it. Other requests go on
    /// meanwhile. However long the sequence, logits are held for a bounded number of rows at a time.
    ///
    /// # Errors
    /// No tokens, more than the context or the KV cache holds, a token that the model does not have, or the device
    /// failed.
    pub fn score(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        self.check_tokens(tokens)?;
        let Some((&_last, prompt)) = tokens.split_last() else {
            return Err(AdmissionError::EmptyPrompt.into());
        };
        if prompt.is_empty() {
            return Ok(Vec::new());
        }
        match self.probe(prompt, Probe::log_probs(tokens[1..].to_vec()))? {
            Probe::LogProbs { found, .. } => {
                let computed = found.into_iter().map(|log_prob| log_prob.map(|log_prob| -log_prob));
                computed.collect::<Option<_>>().ok_or_else(incomplete)
            }
            Probe::Logits { .. } => Err(incomplete()),
        }
    }

    /// The logits, `[vocabulary]` each, after each of the given positions of `tokens`, which ascend.
    ///
    /// # Errors
    /// As [`score`](Self::score); positions that do not ascend or are beyond the tokens.
    pub fn logits(&mut self, tokens: &[u32], positions: &[usize]) -> Result<Vec<Vec<f32>>> {
        let beyond = positions.iter().find(|&&position| position >= tokens.len());
        let unordered = positions.windows(2).find(|pair| pair[0] >= pair[1]).map(|pair| &pair[1]);
        if let Some(&position) = beyond.or(unordered) {
            return Err(EngineError::UnknownPosition { position, tokens: tokens.len() });
        }
        match self.probe(tokens, Probe::logits(positions.to_vec()))? {
            Probe::Logits { found, .. } if found.iter().all(|row| !row.is_empty()) => Ok(found),
            _ => Err(incomplete()),
        }
    }

    /// Runs `prompt` through the model for what `probe` reads from it.
    fn probe(&mut self, prompt: &[u32], probe: Probe) -> Result<Probe> {
        let id = self.admit(Request::new(prompt.to_vec(), 1), Some(probe))?;
        let ended = self.wait_for(id);
        match (ended, self.active.remove(&id)) {
            (Ok(FinishReason::Error(message)), _) => Err(EngineError::Unanswered(message)),
            (Ok(_), Some(Active { probe: Some(probe), .. })) => Ok(probe),
            (Ok(_), _) => Err(incomplete()),
            (Err(error), _) => {
                self.cancel(id);
                Err(error)
            }
        }
    }

    /// Steps until a request has ended.
    fn wait_for(&mut self, id: RequestId) -> Result<FinishReason> {
        while self.scheduler.status(id).is_some() {
            for event in self.advance_for(id)? {
                if let Event::Finished(finished) = event {
                    return Ok(finished.reason);
                }
            }
        }
        Err(incomplete())
    }
}

fn incomplete() -> EngineError {
    EngineError::Unanswered("it ended before all of its tokens were computed".to_owned())
}
