//! Requests in, tokens and results out. How a step is planned stands in `planning`.

use std::collections::BTreeMap;

use super::block_pool::BlockCounts;
use super::config::{ConfigError, SchedulerConfig};
use super::event::{FinishReason, Finished, StepError, StepEvent};
use super::kv_blocks::KvBlocks;
use super::plan::StepId;
use super::request::{AdmissionError, Request};
use super::sequence::{Sequence, SequenceId, SequenceStatus};

/// A step that was planned and whose results have not come back.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) id: StepId,
    pub(super) parts: BTreeMap<SequenceId, InFlightPart>,
}

#[derive(Debug)]
pub(super) struct InFlightPart {
    pub(super) end: usize,
    pub(super) wants_logits: bool,
}

/// Batches requests into steps and gives them KV blocks.
///
/// A call costs O(tokens scheduled + sequences running + blocks of the tables handed out or compared), with a
/// logarithm; nothing walks the whole pool. The exception is [`check_invariants`](Self::check_invariants).
///
/// At most one step is in flight. A step whose pass failed may be left: the next [`schedule`](Self::schedule)
/// plans the same tokens again, and nothing that the failed pass wrote is ever read or shared.
#[derive(Debug)]
pub struct Scheduler {
    pub(super) config: SchedulerConfig,
    pub(super) kv: KvBlocks,
    pub(super) running: BTreeMap<SequenceId, Sequence>,
    pub(super) waiting: BTreeMap<SequenceId, Sequence>,
    pub(super) in_flight: Option<InFlight>,
    next_sequence: u64,
    pub(super) next_step: u64,
}

impl Scheduler {
    /// A scheduler whose blocks are all free.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] names the limit under which nothing could run.
    pub fn new(config: SchedulerConfig) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            kv: KvBlocks::new(&config),
            config,
            running: BTreeMap::new(),
            waiting: BTreeMap::new(),
            in_flight: None,
            next_sequence: 0,
            next_step: 0,
        })
    }

    /// Puts a request at the end of the queue.
    ///
    /// An answer that would outgrow the model's context or the whole KV cache ends there, with
    /// [`FinishReason::Length`]; only what the prompt alone makes impossible is refused.
    ///
    /// # Errors
    ///
    /// [`AdmissionError`] says which limit the request breaks.
    pub fn add(&mut self, request: Request) -> Result<SequenceId, AdmissionError> {
        let config = &self.config;
        let got = request.prompt.len();
        if got == 0 {
            return Err(AdmissionError::EmptyPrompt);
        }
        if request.max_tokens == 0 {
            return Err(AdmissionError::ZeroMaxTokens);
        }
        if got >= config.max_model_len {
            return Err(AdmissionError::PromptExceedsContext { limit: config.max_model_len - 1, got });
        }
        if got > config.kv_capacity() {
            return Err(AdmissionError::PromptExceedsKvCache {
                limit: config.kv_capacity(),
                got,
                blocks: config.blocks,
                block_size: config.block_size,
            });
        }
        if self.waiting.len() >= config.max_waiting {
            return Err(AdmissionError::QueueFull { limit: config.max_waiting });
        }
        let id = SequenceId(self.next_sequence);
        self.next_sequence += 1;
        self.waiting.insert(id, Sequence::new(request));
        Ok(id)
    }

    /// Takes the tokens sampled in `step`: one for each sequence that wanted logits. Tokens of sequences cancelled or
    /// failed since are ignored.
    ///
    /// Only now do the blocks this step filled become shareable.
    ///
    /// # Errors
    ///
    /// [`StepError`] if the results are not those of the step in flight; nothing has changed then.
    pub fn complete(
        &mut self,
        step: StepId,
        sampled: &[(SequenceId, u32)],
    ) -> Result<Vec<StepEvent>, StepError> {
        let tokens = self.check_results(step, sampled)?;
        let parts = self.in_flight.take().map(|in_flight| in_flight.parts).unwrap_or_default();
        let limit = self.config.context_limit();
        let mut events = Vec::new();
        for (id, part) in parts {
            let Some(sequence) = self.running.get_mut(&id) else { continue };
            sequence.computed = part.end;
            self.kv.publish(&mut sequence.table, &sequence.tokens, part.end);
            let Some(&token) = tokens.get(&id) else { continue };
            let known = sequence.tokens.len();
            let reason = sequence.accept(token, limit);
            if sequence.tokens.len() > known {
                events.push(StepEvent::Token { id, token });
            }
            if let Some(finished) = reason.and_then(|reason| self.finish(id, reason)) {
                events.push(StepEvent::Finished(finished));
            }
        }
        Ok(events)
    }

    /// Ends a sequence nobody wants any more, wherever it stands. `None`: it is not known, or ended before.
    ///
    /// If a step that writes to its blocks is in flight, no other sequence gets them before the next
    /// [`schedule`](Self::schedule).
    pub fn cancel(&mut self, id: SequenceId) -> Option<Finished> {
        self.finish(id, FinishReason::Cancelled)
    }

    /// Ends a sequence whose answer is complete by what it says. `None`: it is not known, or ended before.
    pub fn stop(&mut self, id: SequenceId) -> Option<Finished> {
        self.finish(id, FinishReason::Stop)
    }

    /// Ends a sequence that could not be computed. `None`: it is not known, or ended before.
    ///
    /// Called between [`schedule`](Self::schedule) and [`complete`](Self::complete), it fails that one sequence and
    /// the step goes on without it.
    pub fn fail(&mut self, id: SequenceId, message: impl Into<String>) -> Option<Finished> {
        self.finish(id, FinishReason::Error(message.into()))
    }

    /// Where a sequence stands. `None`: it is not known, or ended.
    pub fn status(&self, id: SequenceId) -> Option<SequenceStatus> {
        if self.running.contains_key(&id) {
            return Some(SequenceStatus::Running);
        }
        self.waiting.contains_key(&id).then_some(SequenceStatus::Waiting)
    }

    /// Whether there is anything left to schedule.
    pub fn has_unfinished(&self) -> bool {
        !self.running.is_empty() || !self.waiting.is_empty()
    }

    /// How many sequences run.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// How many sequences wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// How many KV blocks are free, cached and used.
    pub fn blocks(&self) -> BlockCounts {
        self.kv.counts()
    }

    /// The limits this scheduler keeps.
    pub fn config(&self) -> &SchedulerConfig {
        &self.config
    }

    /// The sampled tokens by sequence, if they are just those the step in flight asked for.
    fn check_results(
        &self,
        step: StepId,
        sampled: &[(SequenceId, u32)],
    ) -> Result<BTreeMap<SequenceId, u32>, StepError> {
        let in_flight = match &self.in_flight {
            Some(in_flight) if in_flight.id == step => in_flight,
            other => {
                return Err(StepError::Stale { expected: other.as_ref().map(|other| other.id), got: step });
            }
        };
        let mut tokens = BTreeMap::new();
        for &(id, token) in sampled {
            if !in_flight.parts.get(&id).is_some_and(|part| part.wants_logits) {
                return Err(StepError::UnexpectedToken { id });
            }
            if tokens.insert(id, token).is_some() {
                return Err(StepError::TwoTokens { id });
            }
        }
        let missing = in_flight.parts.iter().find(|(id, part)| {
            part.wants_logits && !tokens.contains_key(id) && self.running.contains_key(id)
        });
        match missing {
            Some((&id, _)) => Err(StepError::MissingToken { id }),
            None => Ok(tokens),
        }
    }

    /// The one way out for a sequence: its blocks go back and it ceases to exist.
    fn finish(&mut self, id: SequenceId, reason: FinishReason) -> Option<Finished> {
        let mut sequence = self.running.remove(&id).or_else(|| self.waiting.remove(&id))?;
        self.kv.release(&mut sequence.table);
        Some(sequence.finished(id, reason))
    }
}
