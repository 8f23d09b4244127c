//! Cases that broke other serving engines, and the plans of small examples in full.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod schedule_executor;

use halite_engine::schedule::{
    AdmissionError, CacheDomain, CacheKey, ConfigError, FinishReason, PrefixReuse, Request, Scheduler,
    SchedulerConfig, SequenceStatus, StepError,
};
use schedule_executor::{Executor, alone};

fn config(blocks: u32, block_size: usize) -> SchedulerConfig {
    SchedulerConfig::new(blocks, block_size, 4096).prefix_caching(CacheKey::from_bytes([9; 16]))
}

fn executor(config: SchedulerConfig) -> Executor {
    Executor::new(Scheduler::new(config).unwrap())
}

/// `length` tokens that no other `seed` begins with.
fn prompt(seed: u32, length: usize) -> Vec<u32> {
    (0..length as u32).map(|i| i.wrapping_mul(31) + 1000 * seed).collect()
}

fn assert_answers(executor: &Executor) {
    for (id, request) in &executor.requests {
        assert_eq!(executor.finished[id].generated, alone(request, 4096), "{id:?}");
    }
}

#[test]
fn limits_under_which_nothing_could_run_are_named() {
    let new = |blocks, size, context| SchedulerConfig::new(blocks, size, context);
    let cases = [
        (new(0, 16, 64), "blocks"),
        (new(4, 0, 64), "block_size"),
        (new(4, 16, 1), "max_model_len"),
        (new(4, 16, 64).max_batch_tokens(0), "max_batch_tokens"),
        (new(4, 16, 64).max_sequences(0), "max_sequences"),
        (new(4, 16, 64).prefill_chunk(0), "prefill_chunk"),
        (new(4, 16, 64).max_waiting(0), "max_waiting"),
    ];
    for (config, name) in cases {
        match Scheduler::new(config).map(|_| ()) {
            Err(ConfigError::TooSmall { field, .. }) => assert_eq!(field, name),
            other => panic!("{name}: {other:?}"),
        }
    }
    let starving = new(4, 16, 64).max_batch_tokens(3).max_sequences(4);
    let expected = ConfigError::MoreSequencesThanTokens { max_sequences: 4, max_batch_tokens: 3 };
    assert_eq!(Scheduler::new(starving).map(|_| ()), Err(expected));
    for size in [usize::MAX, usize::MAX / 4, i64::MAX as usize] {
        let expected = ConfigError::TooManySlots { blocks: 4, block_size: size };
        assert_eq!(Scheduler::new(new(4, size, 64)).map(|_| ()), Err(expected));
    }
}

#[test]
fn requests_that_could_never_run_are_refused_and_others_proceed() {
    let config = SchedulerConfig::new(4, 4, 20).max_waiting(1);
    let mut executor = executor(config.clone());
    let mut refuse = |request| executor.scheduler.add(request).unwrap_err();
    assert_eq!(refuse(Request::new(vec![], 1)), AdmissionError::EmptyPrompt);
    assert_eq!(refuse(Request::new(vec![1], 0)), AdmissionError::ZeroMaxTokens);
    let context = AdmissionError::PromptExceedsContext { limit: 19, got: 20 };
    assert_eq!(refuse(Request::new(vec![1; 20], 1)), context);
    let cache = AdmissionError::PromptExceedsKvCache { limit: 16, got: 17, blocks: 4, block_size: 4 };
    assert_eq!(refuse(Request::new(vec![1; 17], 1)), cache);
    assert!(cache.to_string().contains("17") && cache.to_string().contains("16"), "{cache}");

    let largest = executor.add(Request::new(vec![1; 16], 9));
    let full = AdmissionError::QueueFull { limit: 1 };
    assert_eq!(executor.scheduler.add(Request::new(vec![1], 1)), Err(full));
    executor.run();
    let finished = &executor.finished[&largest];
    assert_eq!((finished.generated.len(), &finished.reason), (1, &FinishReason::Length));
    executor.add(Request::new(vec![1], usize::MAX));
    for _ in 0..40 {
        executor.step();
    }
    assert!(!executor.scheduler.has_unfinished(), "an answer ends where the cache does");
}

#[test]
fn a_chunked_prompt_gets_exact_tables_and_slots_and_decoding_goes_first() {
    let mut executor = executor(SchedulerConfig::new(8, 4, 64).max_batch_tokens(6).max_sequences(2));
    let long = executor.add(Request::new(prompt(1, 9), 2));
    let short = executor.add(Request::new(prompt(2, 1), 9));
    let step = executor.step();
    assert_eq!(step.sequences.len(), 1);
    let first = &step.sequences[0];
    assert_eq!((first.id, first.range.clone()), (long, 0..6));
    assert_eq!((&first.block_table[..], &first.slot_mapping[..]), (&[0, 1][..], &[0, 1, 2, 3, 4, 5][..]));
    assert!(!first.wants_logits);

    let step = executor.step();
    let [second, first] = &step.sequences[..] else { panic!("two sequences, not {step:?}") };
    assert_eq!((first.id, first.range.clone(), first.wants_logits), (long, 6..9, true));
    assert_eq!((&first.block_table[..], &first.slot_mapping[..]), (&[0, 1, 2][..], &[6, 7, 8][..]));
    assert_eq!((second.id, second.range.clone(), second.wants_logits), (short, 0..1, true));
    assert_eq!((&second.block_table[..], &second.slot_mapping[..]), (&[3][..], &[12][..]));

    let step = executor.step();
    let ranges: Vec<_> = step.sequences.iter().map(|part| (part.id, part.range.clone())).collect();
    assert_eq!(ranges, [(long, 9..10), (short, 1..2)]);
    executor.run();
}

/// The token in decoding is never delayed by a prompt, however long.
#[test]
fn a_long_prompt_does_not_stop_decoding() {
    let mut executor = executor(config(1024, 16).max_batch_tokens(64).prefill_chunk(64));
    let decoding = executor.add(Request::new(prompt(1, 1), 40));
    executor.step();
    executor.add(Request::new(prompt(2, 2000), 1));
    for _ in 0..20 {
        let step = executor.step();
        assert_eq!((step.sequences[0].id, step.num_tokens()), (decoding, 64));
    }
}

#[test]
fn a_preempted_sequence_keeps_its_tokens_and_is_not_retried_in_the_same_step() {
    let mut executor = executor(SchedulerConfig::new(6, 2, 64));
    let old = executor.add(Request::new(prompt(1, 2), 9));
    let young = executor.add(Request::new(prompt(2, 2), 9));
    let mut preempted = 0;
    while executor.scheduler.has_unfinished() {
        let before = executor.live.get(&young).cloned();
        let step = executor.step();
        if step.preempted == [young] {
            preempted += 1;
            assert_eq!(executor.live.get(&young).cloned(), before, "its tokens are kept");
            assert_eq!(executor.scheduler.status(young), Some(SequenceStatus::Waiting));
        } else {
            assert!(step.preempted.is_empty());
        }
    }
    assert!(preempted >= 1);
    assert_eq!(executor.finished[&young].preemptions, preempted);
    assert_eq!(executor.finished[&old].preemptions, 0);
    assert_answers(&executor);
}

/// Being the youngest is no reason to lose what one has: without a block it waits, and goes on where it stood.
#[test]
fn a_sequence_short_of_a_block_keeps_its_own() {
    let mut executor = executor(SchedulerConfig::new(5, 2, 64));
    let old = executor.add(Request::new(prompt(1, 2), 4));
    let young = executor.add(Request::new(prompt(2, 2), 4));
    for tokens in 3..=5 {
        let step = executor.step();
        assert_eq!((step.sequences.len(), executor.live[&young].len()), (2, tokens));
    }
    // Each has two full blocks and the old one takes the fifth.
    let step = executor.step();
    assert_eq!((step.sequences.len(), step.sequences[0].id, &step.preempted[..]), (1, old, &[][..]));
    assert_eq!(executor.scheduler.status(young), Some(SequenceStatus::Running));
    let step = executor.step();
    assert_eq!((step.sequences[0].id, step.sequences[0].range.clone()), (young, 4..5));
    assert_eq!(executor.finished[&young].preemptions, 0);
    assert_answers(&executor);
}

/// Starting into blocks that others are about to need would only be undone a few steps later.
#[test]
fn nobody_is_admitted_into_blocks_that_are_promised() {
    let mut executor = executor(SchedulerConfig::new(12, 4, 4096).prefill_chunk(4));
    let long = executor.add(Request::new(prompt(1, 32), 4));
    let fits = executor.add(Request::new(prompt(2, 3), 1));
    executor.add(Request::new(prompt(3, 8), 4));
    let step = executor.step();
    assert_eq!(step.sequences.iter().map(|part| part.id).collect::<Vec<_>>(), [long, fits]);
    executor.run();
    assert!(executor.finished.values().all(|finished| finished.preemptions == 0));
    assert_answers(&executor);
}

/// Evict, requeue, prefill again for ever: with hardly any blocks everybody must still finish, the oldest first.
#[test]
fn an_undersized_cache_does_not_livelock() {
    for caching in [false, true] {
        let sized = if caching { config(5, 4) } else { SchedulerConfig::new(5, 4, 4096) };
        let mut executor = executor(sized.max_sequences(16));
        let ids: Vec<_> = (0..16).map(|n| executor.add(Request::new(prompt(n % 3, 5), 14))).collect();
        executor.run();
        assert_eq!(executor.finished[&ids[0]].preemptions, 0);
        assert_answers(&executor);
    }
}

#[test]
fn two_prompts_that_each_fill_the_cache_both_finish() {
    let mut executor = executor(config(64, 16));
    for seed in 0..2 {
        executor.add(Request::new(prompt(seed, 64 * 16 - 8), 8));
    }
    executor.run();
    assert_answers(&executor);
}

/// Blocks entered into the cache before their step would be read by the second request unwritten.
#[test]
fn equal_prompts_in_one_step_share_only_afterwards() {
    let mut executor = executor(config(32, 4));
    for _ in 0..3 {
        executor.add(Request::new(prompt(1, 13), 4));
    }
    let step = executor.step();
    assert!(step.sequences.iter().all(|part| part.range == (0..13)));
    let late = executor.add(Request::new(prompt(1, 13), 4));
    let step = executor.step();
    let attached = step.sequences.iter().find(|part| part.id == late).unwrap();
    assert_eq!(attached.range, 12..13, "full blocks of a completed step are shared");
    // The three that computed the same went over to one copy: 3 shared blocks, and one or two of each own.
    for part in &step.sequences {
        assert_eq!(part.block_table[..3], attached.block_table[..3]);
    }
    assert_eq!(executor.scheduler.blocks().used, 3 + 4);
    executor.run();
    assert_answers(&executor);
}

#[test]
fn one_token_is_always_left_to_compute() {
    let mut executor = executor(config(32, 4));
    executor.add(Request::new(prompt(1, 8), 1));
    executor.run();
    let again = executor.add(Request::new(prompt(1, 8), 1));
    let step = executor.step();
    assert_eq!((step.sequences[0].range.clone(), step.sequences[0].wants_logits), (4..8, true));
    assert_eq!(executor.finished[&again].cached_tokens, 4);
}

/// Contents that were evicted and whose blocks hold others now are not found, wholly or in part.
#[test]
fn nothing_stale_is_found_after_eviction() {
    let mut executor = executor(config(8, 4));
    for round in 0..50 {
        let seed = [1, 2, 1, 3, 3, 1, 2][round % 7];
        let id = executor.add(Request::new(prompt(seed, 9 + round % 20), 3));
        executor.run();
        assert!(executor.finished[&id].cached_tokens.is_multiple_of(4));
    }
    assert_answers(&executor);
}

/// A cache full of prefixes is room, not a leak: small prompts still run.
#[test]
fn cached_blocks_give_way() {
    let mut executor = executor(config(8, 4));
    for seed in 0..100 {
        executor.add(Request::new(prompt(seed, 11), 2));
        executor.run();
        let blocks = executor.scheduler.blocks();
        assert_eq!((blocks.free + blocks.cached, blocks.used), (8, 0));
    }
    assert!(executor.scheduler.blocks().cached >= 6);
    assert_answers(&executor);
}

/// Whatever a request asks of its answer, its blocks become reusable and evictable.
#[test]
fn every_request_leaves_its_prefix_whatever_it_asks() {
    let requests = [
        Request::new(prompt(1, 9), 1),
        Request::new(prompt(2, 9), 5).stop_tokens([0, 1, 2, 3, 4]),
        Request::new(prompt(3, 9), 5).domain(CacheDomain::new().tenant("2.2.2.2").adapter("x")),
    ];
    let mut executor = executor(config(64, 4));
    for request in requests {
        executor.add(request.clone());
        executor.run();
        let again = executor.add(request);
        executor.run();
        assert_eq!(executor.finished[&again].cached_tokens, 8);
    }
}

#[test]
fn prefixes_are_reused_within_a_domain_and_never_across() {
    let domains = [
        CacheDomain::new(),
        CacheDomain::new().tenant("a"),
        CacheDomain::new().tenant("b"),
        CacheDomain::new().adapter("a"),
        CacheDomain::new().tenant("a").adapter("a"),
    ];
    let mut executor = executor(config(64, 4));
    for domain in &domains {
        for expected in [0, 12] {
            let id = executor.add(Request::new(prompt(1, 13), 1).domain(domain.clone()));
            executor.run();
            assert_eq!(executor.finished[&id].cached_tokens, expected, "{domain:?}");
        }
    }
}

#[test]
fn a_request_without_prefix_finds_nothing_and_leaves_nothing() {
    let mut executor = executor(config(8, 4));
    executor.add(Request::new(prompt(1, 13), 1));
    executor.run();
    let cached = executor.scheduler.blocks();
    assert_eq!((cached.cached, cached.free), (3, 5));
    // Each fills all free blocks: whatever one left behind, the next would have to evict something for.
    for seed in [1, 2, 2, 3] {
        let id = executor.add(Request::new(prompt(seed, 18), 1).prefix_reuse(PrefixReuse::Off));
        executor.run();
        assert_eq!(executor.finished[&id].cached_tokens, 0);
        assert_eq!(executor.scheduler.blocks(), cached);
    }
    let again = executor.add(Request::new(prompt(1, 13), 1));
    executor.run();
    assert_eq!(executor.finished[&again].cached_tokens, 12);
    assert_answers(&executor);
}

#[test]
fn a_failed_sequence_frees_its_blocks_and_the_step_goes_on() {
    let mut executor = executor(config(16, 4));
    let [bad, good] = [1, 2].map(|seed| executor.add(Request::new(prompt(seed, 9), 4)));
    let plan = executor.plan();
    let sampled = executor.compute(&plan);
    assert_eq!(
        executor.scheduler.complete(plan.id, &sampled[1..]),
        Err(StepError::MissingToken { id: bad }),
        "a token is not simply missing"
    );
    executor.fail(bad);
    executor.complete(&plan, &sampled[1..]);
    assert_eq!(executor.scheduler.blocks().used, 3);
    executor.run();
    assert_eq!(executor.finished[&bad].reason, FinishReason::Error("the pass failed".into()));
    assert_eq!(executor.finished[&good].generated, alone(&executor.requests[&good], 4096));
    assert_eq!(executor.scheduler.fail(bad, "again"), None);
    assert_eq!(executor.scheduler.cancel(good), None);
}

#[test]
fn results_of_another_step_change_nothing() {
    let mut executor = executor(SchedulerConfig::new(16, 4, 64).prefill_chunk(4));
    let chunked = executor.add(Request::new(prompt(1, 9), 4));
    let short = executor.add(Request::new(prompt(2, 1), 4));
    let lost = executor.plan();
    executor.spoil(&lost);
    let plan = executor.plan();
    let sampled = executor.compute(&plan);
    let mut refuse = |step, sampled: &[_]| executor.scheduler.complete(step, sampled).unwrap_err();
    assert_eq!(refuse(lost.id, &sampled), StepError::Stale { expected: Some(plan.id), got: lost.id });
    assert_eq!(refuse(plan.id, &[(chunked, 1), (short, 1)]), StepError::UnexpectedToken { id: chunked });
    assert_eq!(refuse(plan.id, &[(short, 1), (short, 1)]), StepError::TwoTokens { id: short });
    assert_eq!(refuse(plan.id, &[]), StepError::MissingToken { id: short });
    executor.complete(&plan, &sampled);
    let again = executor.scheduler.complete(plan.id, &sampled);
    assert_eq!(again, Err(StepError::Stale { expected: None, got: plan.id }));
    executor.run();
    assert_answers(&executor);
}

/// Waiting, within the prompt, decoding, preempted, in flight: wherever it is ended, everything comes back.
#[test]
fn a_thousand_random_aborts_leave_no_trace() {
    let mut executor = executor(config(12, 4).max_sequences(6).max_batch_tokens(16).prefill_chunk(5));
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % below
    };
    let (mut aborted, mut waiting, mut preempted, mut in_flight) = (0, 0, 0, 0);
    while aborted < 1000 {
        while executor.live.len() < 10 {
            executor.add(Request::new(prompt(random(4) as u32, 1 + random(14)), 1 + random(30)));
        }
        let plan = executor.plan();
        preempted += plan.preempted.len();
        let sampled = executor.compute(&plan);
        let ids: Vec<_> = executor.live.keys().copied().collect();
        let victim = plan.preempted.first().copied().unwrap_or(ids[random(ids.len())]);
        if plan.preempted.is_empty() && random(4) != 0 {
            executor.complete(&plan, &sampled);
            continue;
        }
        waiting += usize::from(executor.scheduler.status(victim) == Some(SequenceStatus::Waiting));
        if random(2) == 0 {
            executor.cancel(victim);
            in_flight += usize::from(plan.sequences.iter().any(|part| part.id == victim));
            executor.complete(&plan, &sampled);
        } else {
            executor.complete(&plan, &sampled);
            if executor.live.contains_key(&victim) {
                executor.cancel(victim);
            }
        }
        aborted = executor.finished.values().filter(|f| f.reason == FinishReason::Cancelled).count();
    }
    assert!(waiting > 50 && preempted > 10 && in_flight > 50, "{waiting} {preempted} {in_flight}");
    for id in executor.live.keys().copied().collect::<Vec<_>>() {
        executor.cancel(id);
    }
    let blocks = executor.scheduler.blocks();
    assert_eq!((blocks.free + blocks.cached, blocks.used, blocks.all), (12, 0, 12));
    assert_eq!((executor.scheduler.running(), executor.scheduler.waiting()), (0, 0));
    executor.add(Request::new(prompt(7, 48), 1));
    executor.run();
}
