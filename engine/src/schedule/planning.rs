//! Continuous batching: who computes how many tokens in the next step.
//!
//! Sequences are ordered by admission, and every rule follows that order. The running ones are always older than the
//! waiting ones. Blocks are taken from younger sequences by older ones, never the other way, and nobody who lost
//! them is admitted again in the same step. The oldest therefore keeps what it has and gets what it needs: it computes
//! at least one token in each step, fits into the pool alone (checked at admission), and so finishes; then the next
//! one is the oldest. The number of steps is at most the sum of all lengths, and a sequence loses its blocks at most
//! once a step.

use super::plan::{StepId, StepPlan};
use super::scheduler::{InFlight, InFlightPart, Scheduler};
use super::sequence::{Sequence, SequenceId};

impl Scheduler {
    /// Plans the next step. A step still in flight is given up and its tokens are planned again.
    pub fn schedule(&mut self) -> StepPlan {
        let mut plan = StepPlan::new(StepId(self.next_step));
        self.next_step += 1;

        // Decoding comes first: one token for each is set aside before prompts share the rest. As max_sequences is at
        // most max_batch_tokens, the rest is at least one token for each sequence that is not decoding.
        let decoding = self.running.values().filter(|sequence| sequence.remaining() == 1).count();
        let mut budget = self.config.max_batch_tokens - decoding;
        let mut short_of_blocks = false;
        let ids: Vec<SequenceId> = self.running.keys().copied().collect();
        for id in ids {
            // The youngest are preempted first, so once one is gone all that follow are.
            let Some(remaining) = self.running.get(&id).map(Sequence::remaining) else { break };
            let wanted = if remaining == 1 { 1 } else { self.chunk(remaining, budget) };
            let count = self.reserve(id, wanted, &mut plan);
            if remaining > 1 {
                budget -= count;
            }
            short_of_blocks |= count < wanted;
            self.plan_part(id, count, &mut plan);
        }
        // The promises that `admit` counts imply this; said here, it needs no proof that nobody is retried in a step.
        if !short_of_blocks && plan.preempted.is_empty() {
            self.admit(budget, &mut plan);
        }
        // A stable sort: within each kind, the order of admission stays.
        plan.sequences.sort_by_key(|part| part.range.len() > 1);

        let parts = plan.sequences.iter();
        let parts = parts
            .map(|part| (part.id, InFlightPart { end: part.range.end, wants_logits: part.wants_logits }))
            .collect();
        self.in_flight = Some(InFlight { id: plan.id, parts });
        plan
    }

    /// Tokens of a prompt to compute next.
    fn chunk(&self, remaining: usize, budget: usize) -> usize {
        remaining.min(self.config.prefill_chunk).min(budget)
    }

    /// Gives a running sequence blocks for `wanted` more tokens, taking those of younger sequences when none is left.
    /// Returns how many of the tokens have blocks now: fewer if only older sequences hold the rest. It keeps what
    /// it has and waits for them.
    fn reserve(&mut self, id: SequenceId, wanted: usize, plan: &mut StepPlan) -> usize {
        let size = self.config.block_size;
        loop {
            let Some(sequence) = self.running.get_mut(&id) else { return 0 };
            let held = sequence.table.blocks.len() * size - sequence.computed;
            if held >= wanted {
                return wanted;
            }
            if self.kv.grow(&mut sequence.table) {
                continue;
            }
            match self.running.last_key_value() {
                Some((&youngest, _)) if youngest > id => {
                    self.preempt(youngest);
                    plan.preempted.push(youngest);
                }
                _ => return held,
            }
        }
    }

    /// Takes a running sequence's blocks and puts it back into the queue, before everybody younger. Its tokens stay;
    /// their KV is computed again, or found in the cache if nobody needed the blocks in the meantime.
    fn preempt(&mut self, id: SequenceId) {
        let Some(mut sequence) = self.running.remove(&id) else { return };
        self.kv.release(&mut sequence.table);
        sequence.computed = 0;
        sequence.preemptions += 1;
        self.waiting.insert(id, sequence);
    }

    /// Starts waiting sequences, first come first served, while there is budget and room for all their known tokens.
    fn admit(&mut self, mut budget: usize, plan: &mut StepPlan) {
        let size = self.config.block_size;
        // Blocks the running sequences are going to ask for: the rest of their prompts, and one more each to grow into.
        // Admitting into those would only mean preempting soon.
        let promised = |sequence: &Sequence| {
            (sequence.blocks_needed(size) + 1).saturating_sub(sequence.table.blocks.len())
        };
        let mut promises: usize = self.running.values().map(promised).sum();
        while budget > 0 && self.running.len() < self.config.max_sequences {
            let Some(mut first) = self.waiting.first_entry() else { return };
            let sequence = first.get_mut();
            let found = self.kv.find_prefix(&mut sequence.table, &sequence.tokens);
            let needed = sequence.blocks_needed(size) - found.used;
            // With nothing running there are no promises and every block is available: the first always starts.
            if promises + needed > self.kv.available() {
                return;
            }
            let (id, mut sequence) = first.remove_entry();
            sequence.computed = self.kv.attach(&mut sequence.table, found);
            if !sequence.started {
                sequence.started = true;
                sequence.cached_tokens = sequence.computed;
            }
            let wanted = self.chunk(sequence.remaining(), budget);
            self.running.insert(id, sequence);
            let count = self.reserve(id, wanted, plan);
            budget -= count;
            self.plan_part(id, count, plan);
            promises += self.running.get(&id).map_or(0, promised);
        }
    }

    fn plan_part(&self, id: SequenceId, count: usize, plan: &mut StepPlan) {
        if let (Some(sequence), 1..) = (self.running.get(&id), count) {
            let end = sequence.computed + count;
            plan.sequences.push(sequence.scheduled(id, end, self.config.block_size));
        }
    }
}
