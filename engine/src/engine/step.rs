//! One step: what the scheduler plans, the runner computes, and the events that come of it.

use super::{Engine, Event, id_of};
use crate::Result;
use crate::runner::{SequencePart, StepBatch, StepOutput};
use crate::schedule::{FinishReason, StepPlan};

impl Engine {
    /// Computes one step for the requests whose turn it is, and says what happened. Without requests nothing happens.
    ///
    /// A step that the device fails ends the requests in it, with [`FinishReason::Error`],
    /// and gives their memory back; the others go on with the next step.
    ///
    /// # Errors
    /// Faults of the engine itself only.
    pub fn step(&mut self) -> Result<Vec<Event>> {
        let events = self.advance()?;
        let mut told = std::mem::take(&mut self.pending);
        told.extend(events);
        Ok(told)
    }

    /// One step, without the events that are pending.
    pub(super) fn advance(&mut self) -> Result<Vec<Event>> {
        let plan = self.scheduler.schedule();
        if plan.is_empty() {
            return Ok(Vec::new());
        }
        let batch = self.batch(&plan);
        let mut events = match self.runner.step(&batch) {
            Ok(output) => {
                self.record_probes(&plan, &output);
                let wanting = plan.sequences.iter().filter(|part| part.wants_logits);
                let sampled: Vec<_> = wanting.map(|part| part.id).zip(output.tokens).collect();
                self.scheduler.complete(plan.id, &sampled)?
            }
            Err(error) => {
                tracing::error!(%error, sequences = plan.sequences.len(), "a step failed");
                let message = error.to_string();
                let failed = plan.sequences.iter().filter_map(|part| self.scheduler.fail(part.id, &*message));
                failed.map(Event::Finished).collect()
            }
        };
        self.remember(&events);
        self.end_at_stop_strings(&mut events);
        for event in &events {
            if let Event::Finished(finished) = event {
                // A probe outlives its request, until the caller that waits for it takes it.
                if self.active.get(&finished.id).is_some_and(|active| active.probe.is_none()) {
                    self.active.remove(&finished.id);
                }
            }
        }
        Ok(events)
    }

    /// Adds drawn tokens to what penalties look at.
    fn remember(&mut self, events: &[Event]) {
        for event in events {
            let Event::Token { id, token } = event else { continue };
            if let Some(adjustment) = self.active.get_mut(id).and_then(|active| active.adjustment.as_mut()) {
                adjustment.output.push(*token);
            }
        }
    }

    /// Ends the answers in which a stop string is complete now.
    fn end_at_stop_strings(&mut self, events: &mut Vec<Event>) {
        let mut stopped = Vec::new();
        for event in &*events {
            let Event::Token { id, token } = event else { continue };
            let Some(text) = self.active.get_mut(id).and_then(|active| active.text.as_mut()) else {
                continue;
            };
            // An id beyond the vocabulary, which a padded output layer can give, spells nothing.
            if text.push(*token).is_ok() && text.is_stopped() {
                stopped.push(*id);
            }
        }
        for event in events.iter_mut() {
            // The last token that there was room for completed it.
            if let Event::Finished(finished) = event
                && stopped.contains(&finished.id)
            {
                finished.reason = FinishReason::Stop;
            }
        }
        events.extend(stopped.into_iter().filter_map(|id| self.scheduler.stop(id)).map(Event::Finished));
    }

    /// Steps until `id` has an event; those of others wait for [`step`](Self::step).
    pub(super) fn advance_for(&mut self, id: super::RequestId) -> Result<Vec<Event>> {
        let (own, others) = self.advance()?.into_iter().partition(|event| id_of(event) == id);
        self.pending.extend::<Vec<Event>>(others);
        Ok(own)
    }

    /// The plan as the runner takes it.
    fn batch(&self, plan: &StepPlan) -> StepBatch {
        let mut batch = StepBatch::new();
        for part in &plan.sequences {
            let rows = batch.push(SequencePart {
                start: part.range.start,
                tokens: &part.tokens,
                slot_mapping: &part.slot_mapping,
                block_table: &part.block_table,
            });
            let Some(active) = self.active.get(&part.id) else { continue };
            if let Some(probe) = &active.probe {
                probe.ask(&part.range, &rows, &mut batch);
            }
            if part.wants_logits {
                // The drawn token's own position: a seed gives the same answer however the prompt is cut.
                if let Some(adjustment) = &active.adjustment {
                    batch.adjustments.insert(batch.samples.len(), adjustment.clone());
                }
                batch.samples.push((rows.end - 1, active.sampling.clone().at(part.range.end as u64)));
            }
        }
        batch
    }

    /// Hands each probe its share of the output.
    fn record_probes(&mut self, plan: &StepPlan, output: &StepOutput) {
        let vocabulary = self.runner.info().vocabulary;
        let mut log_probs = output.log_probs.iter().copied();
        let mut logits = output.logits.chunks_exact(vocabulary.max(1));
        for part in &plan.sequences {
            if let Some(probe) = self.active.get_mut(&part.id).and_then(|active| active.probe.as_mut()) {
                probe.record(&part.range, &mut log_probs, &mut logits);
            }
        }
    }
}
