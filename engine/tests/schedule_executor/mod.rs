//! Runs steps on a toy model whose KV memory remembers who wrote what, so that every wrong slot, block table,
//! premature share or stale block is seen as a token that is not the sequence's own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, HashMap, HashSet};

use halite_engine::schedule::{
    CacheDomain, Finished, PrefixReuse, Request, Scheduler, SequenceId, StepEvent, StepId, StepPlan,
};

/// Token ids of the toy model: few, so that random prompts share prefixes and stop tokens come up.
pub(crate) const VOCABULARY: u32 = 5;

/// What stands in one slot of the toy cache.
#[derive(Clone, Debug)]
struct Written {
    token: u32,
    position: usize,
    domain: CacheDomain,
    step: StepId,
}

/// The toy model's answer: a hash of all tokens, in order (FNV-1a).
pub(crate) fn next_token(tokens: impl IntoIterator<Item = u32>) -> u32 {
    let hash = tokens.into_iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, token| {
        (hash ^ u64::from(token)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 20) as u32 % VOCABULARY
}

/// What the toy model generates without any scheduler, in a context of `limit` tokens.
pub(crate) fn alone(request: &Request, limit: usize) -> Vec<u32> {
    let mut tokens = request.prompt.clone();
    while tokens.len() < (request.prompt.len() + request.max_tokens).min(limit) {
        let token = next_token(tokens.iter().copied());
        if request.stop_tokens.contains(&token) {
            break;
        }
        tokens.push(token);
    }
    tokens.split_off(request.prompt.len())
}

/// A scheduler, its toy model and what both should agree on.
pub(crate) struct Executor {
    pub(crate) scheduler: Scheduler,
    pub(crate) requests: HashMap<SequenceId, Request>,
    /// Unfinished sequences with all their tokens.
    pub(crate) live: BTreeMap<SequenceId, Vec<u32>>,
    pub(crate) finished: HashMap<SequenceId, Finished>,
    pub(crate) steps: usize,
    slots: HashMap<i64, Written>,
}

impl Executor {
    pub(crate) fn new(scheduler: Scheduler) -> Self {
        Self {
            scheduler,
            requests: HashMap::new(),
            live: BTreeMap::new(),
            finished: HashMap::new(),
            steps: 0,
            slots: HashMap::new(),
        }
    }

    pub(crate) fn add(&mut self, request: Request) -> SequenceId {
        let id = self.scheduler.add(request.clone()).expect("admitted");
        self.live.insert(id, request.prompt.clone());
        self.requests.insert(id, request);
        id
    }

    pub(crate) fn cancel(&mut self, id: SequenceId) {
        let finished = self.scheduler.cancel(id);
        assert_eq!(finished.is_some(), self.live.contains_key(&id));
        self.end(finished);
        self.check();
    }

    pub(crate) fn fail(&mut self, id: SequenceId) {
        let finished = self.scheduler.fail(id, "the pass failed");
        self.end(finished);
        self.check();
    }

    /// Plans, checks, computes and completes one step.
    pub(crate) fn step(&mut self) -> StepPlan {
        let plan = self.plan();
        let sampled = self.compute(&plan);
        self.complete(&plan, &sampled);
        plan
    }

    /// Steps until nothing is left, in no more steps than there are tokens to compute.
    pub(crate) fn run(&mut self) {
        let length = |id| {
            let request: &Request = &self.requests[id];
            request.prompt.len() + request.max_tokens
        };
        let bound: usize = self.live.keys().map(length).sum();
        for _ in 0..bound {
            if !self.scheduler.has_unfinished() {
                break;
            }
            self.step();
        }
        assert!(!self.scheduler.has_unfinished(), "{} unfinished after {bound} steps", self.live.len());
        assert!(self.live.is_empty());
    }

    pub(crate) fn check(&self) {
        self.scheduler.check_invariants().unwrap();
        let blocks = self.scheduler.blocks();
        assert_eq!(blocks.free + blocks.cached + blocks.used, blocks.all);
        if !self.scheduler.has_unfinished() {
            assert_eq!(blocks.used, 0, "blocks outlive their sequences");
        }
    }

    /// Plans a step and checks that it keeps the limits and makes progress.
    pub(crate) fn plan(&mut self) -> StepPlan {
        let plan = self.scheduler.schedule();
        self.steps += 1;
        self.check();
        let config = self.scheduler.config();
        assert!(plan.num_tokens() <= config.max_batch_tokens);
        assert!(plan.sequences.len() <= config.max_sequences);
        assert!(plan.sequences.is_sorted_by_key(|part| part.range.len() > 1), "decoding comes first");
        let ids: HashSet<_> = plan.sequences.iter().map(|part| part.id).collect();
        assert_eq!(ids.len(), plan.sequences.len());
        assert!(plan.preempted.iter().all(|id| !ids.contains(id)), "preempted and scheduled in one step");
        if let Some((oldest, _)) = self.live.first_key_value() {
            assert!(ids.contains(oldest), "the oldest sequence makes no progress");
        }
        for part in &plan.sequences {
            let tokens = &self.live[&part.id];
            assert!(!part.range.is_empty() && part.range.len() <= config.prefill_chunk);
            assert_eq!(part.tokens, tokens[part.range.clone()]);
            assert_eq!(part.block_table.len(), part.range.end.div_ceil(config.block_size));
            assert_eq!(part.wants_logits, part.range.end == tokens.len());
            let slots: Vec<i64> = part.range.clone().map(|p| self.slot(&part.block_table, p)).collect();
            assert_eq!(part.slot_mapping, slots);
        }
        plan
    }

    /// Writes the step's KV, then attends: what is read must be the sequence's own history and nothing else.
    pub(crate) fn compute(&mut self, plan: &StepPlan) -> Vec<(SequenceId, u32)> {
        let mut fresh = HashSet::new();
        for part in &plan.sequences {
            let domain = self.requests[&part.id].domain.clone();
            for ((position, &token), &slot) in part.range.clone().zip(&part.tokens).zip(&part.slot_mapping) {
                assert!(fresh.insert(slot), "slot {slot} is written twice in one step");
                let written = Written { token, position, domain: domain.clone(), step: plan.id };
                self.slots.insert(slot, written);
            }
        }
        let mut sampled = Vec::new();
        for part in &plan.sequences {
            let read: Vec<u32> = (0..part.range.end)
                .map(|position| {
                    let slot = self.slot(&part.block_table, position);
                    let written = self.slots.get(&slot).expect("read before it was ever written");
                    assert_eq!(written.position, position);
                    assert_eq!(written.domain, self.requests[&part.id].domain);
                    let own = part.range.contains(&position);
                    assert_eq!(written.step == plan.id, own, "read another sequence's KV of the same step");
                    written.token
                })
                .collect();
            assert_eq!(read, self.live[&part.id][..part.range.end]);
            if part.wants_logits {
                sampled.push((part.id, next_token(read)));
            }
        }
        sampled
    }

    /// A pass that fails after it has written rubbish to all its slots.
    pub(crate) fn spoil(&mut self, plan: &StepPlan) {
        for slot in plan.sequences.iter().flat_map(|part| &part.slot_mapping) {
            let domain = CacheDomain::new().tenant("rubbish");
            self.slots
                .insert(*slot, Written { token: u32::MAX, position: usize::MAX, domain, step: plan.id });
        }
    }

    pub(crate) fn complete(&mut self, plan: &StepPlan, sampled: &[(SequenceId, u32)]) {
        let events = self.scheduler.complete(plan.id, sampled).unwrap();
        for event in events {
            match event {
                StepEvent::Token { id, token } => self.live.get_mut(&id).expect("live").push(token),
                StepEvent::Finished(finished) => self.end(Some(finished)),
                other => panic!("unknown event {other:?}"),
            }
        }
        self.check();
    }

    fn end(&mut self, finished: Option<Finished>) {
        let Some(finished) = finished else { return };
        let tokens = self.live.remove(&finished.id).expect("ended once");
        let request = &self.requests[&finished.id];
        assert_eq!(finished.generated, tokens[request.prompt.len()..], "the events and the result differ");
        assert_eq!(finished.prompt_tokens, request.prompt.len());
        assert!(finished.preemptions <= self.steps);
        assert!(finished.cached_tokens < finished.prompt_tokens);
        assert!(finished.cached_tokens == 0 || request.prefix_reuse == PrefixReuse::On);
        assert_eq!(self.scheduler.status(finished.id), None);
        self.finished.insert(finished.id, finished);
    }

    fn slot(&self, block_table: &[u32], position: usize) -> i64 {
        let size = self.scheduler.config().block_size;
        i64::from(block_table[position / size]) * size as i64 + (position % size) as i64
    }
}
