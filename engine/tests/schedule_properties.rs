//! The scheduler under random requests, pools, cancellations and failures.

mod schedule_executor;

use halite_engine::schedule::{
    CacheDomain, CacheKey, FinishReason, PrefixReuse, Request, Scheduler, SchedulerConfig,
};
use proptest::prelude::*;
use schedule_executor::{Executor, VOCABULARY, alone};

#[derive(Debug, Clone)]
enum Action {
    Add(Request),
    Step,
    /// The whole pass fails and is planned again.
    FailedPass,
    /// One sequence fails in flight, the others go on.
    FailedSequence(usize),
    /// Cancelled between two steps.
    Cancel(usize),
    /// Cancelled while its step is computed.
    CancelInFlight(usize),
}

fn domain() -> impl Strategy<Value = CacheDomain> {
    prop_oneof![
        4 => Just(CacheDomain::new()),
        1 => Just(CacheDomain::new().tenant("a")),
        1 => Just(CacheDomain::new().adapter("a")),
    ]
}

/// Prompts of a few families that share prefixes of any length, some with an end of their own.
fn request(limit: usize) -> impl Strategy<Value = Request> {
    let tail = prop::collection::vec(0..VOCABULARY, 0..3);
    let reuse = prop_oneof![5 => Just(PrefixReuse::On), 1 => Just(PrefixReuse::Off)];
    (1..=limit, 0u32..3, tail, 1usize..20, prop::option::of(0..VOCABULARY), domain(), reuse).prop_map(
        |(length, family, tail, max_tokens, stop, domain, reuse)| {
            let mut prompt: Vec<u32> = (0..length as u32).map(|i| (i * i + family) % VOCABULARY).collect();
            let kept = length.saturating_sub(tail.len());
            prompt.truncate(kept);
            prompt.extend(tail);
            prompt.truncate(length);
            Request::new(prompt, max_tokens)
                .stop_tokens(Vec::from_iter(stop))
                .domain(domain)
                .prefix_reuse(reuse)
        },
    )
}

fn action(limit: usize) -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => request(limit).prop_map(Action::Add),
        8 => Just(Action::Step),
        1 => Just(Action::FailedPass),
        1 => any::<usize>().prop_map(Action::FailedSequence),
        1 => any::<usize>().prop_map(Action::Cancel),
        1 => any::<usize>().prop_map(Action::CancelInFlight),
    ]
}

/// Pools from a single block to plenty, blocks from one token, chunks and batches from one token.
fn config() -> impl Strategy<Value = SchedulerConfig> {
    (1u32..24, 1usize..6, 2usize..64, 1usize..24, 1usize..7, 1usize..16, any::<bool>()).prop_map(
        |(blocks, block_size, context, batch, sequences, chunk, caching)| {
            let config = SchedulerConfig::new(blocks, block_size, context)
                .max_batch_tokens(batch.max(sequences))
                .max_sequences(sequences)
                .prefill_chunk(chunk);
            if caching { config.prefix_caching(CacheKey::from_bytes([3; 16])) } else { config }
        },
    )
}

fn scenario() -> impl Strategy<Value = (SchedulerConfig, Vec<Action>)> {
    config().prop_flat_map(|config| {
        let longest = (config.max_model_len - 1).min(config.blocks as usize * config.block_size);
        (Just(config), prop::collection::vec(action(longest), 1..60))
    })
}

/// The longest a sequence can get: the context, or one token more than the KV cache holds.
fn context(config: &SchedulerConfig) -> usize {
    config.max_model_len.min(config.blocks as usize * config.block_size + 1)
}

fn pick(executor: &Executor, index: usize) -> Option<halite_engine::schedule::SequenceId> {
    let ids: Vec<_> = executor.live.keys().copied().collect();
    (!ids.is_empty()).then(|| ids[index % ids.len()])
}

fn perform(executor: &mut Executor, action: Action) {
    match action {
        Action::Add(request) => {
            executor.add(request);
            executor.check();
        }
        Action::Step => {
            executor.step();
        }
        Action::FailedPass => {
            let plan = executor.plan();
            executor.spoil(&plan);
        }
        Action::Cancel(index) => {
            if let Some(id) = pick(executor, index) {
                executor.cancel(id);
            }
        }
        Action::FailedSequence(index) | Action::CancelInFlight(index) => {
            let plan = executor.plan();
            let mut sampled = executor.compute(&plan);
            if let Some(id) = pick(executor, index) {
                if let Action::FailedSequence(_) = action {
                    // A failed sequence has no token; a cancelled one may still bring its own.
                    executor.fail(id);
                    sampled.retain(|&(sampled, _)| sampled != id);
                } else {
                    executor.cancel(id);
                }
            }
            executor.complete(&plan, &sampled);
        }
    }
}

proptest! {
    // A failure prints its configuration and actions, which is all it takes to repeat it.
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever happens around it, a sequence generates what it would alone, or a beginning of that if it was ended.
    /// The executor checks every step: invariants, limits, slots, what each sequence reads, progress of the oldest.
    #[test]
    fn everybody_gets_the_answer_they_would_get_alone((config, actions) in scenario()) {
        let limit = context(&config);
        let mut executor = Executor::new(Scheduler::new(config).unwrap());
        for action in actions {
            perform(&mut executor, action);
        }
        executor.run();
        for (id, request) in &executor.requests {
            let (finished, expected) = (&executor.finished[id], alone(request, limit));
            match finished.reason {
                FinishReason::Stop | FinishReason::Length => prop_assert_eq!(&finished.generated, &expected),
                _ => prop_assert!(expected.starts_with(&finished.generated)),
            }
            let long = expected.len() == request.max_tokens || request.prompt.len() + expected.len() == limit;
            match finished.reason {
                FinishReason::Stop => prop_assert!(!long),
                FinishReason::Length => prop_assert!(long),
                _ => {}
            }
        }
    }

    /// The same calls give the same plans: nothing random, no clock, no order of a hash map.
    #[test]
    fn plans_are_deterministic((config, actions) in scenario()) {
        let mut twins = [(); 2].map(|()| Executor::new(Scheduler::new(config.clone()).unwrap()));
        for action in actions {
            twins.iter_mut().for_each(|twin| perform(twin, action.clone()));
            let [a, b] = [0, 1].map(|i| twins[i].scheduler.schedule());
            prop_assert_eq!(a, b);
        }
    }
}
