//! How a step is cut into tasks.

use super::*;
use halite_kernels::cache::KvSpec;

#[test]
fn a_task_has_as_many_tokens_as_its_rows_allow() {
    let (attention, expanded) = (crate::attention::TASK_ROWS, crate::mla::TASK_ROWS);
    for (rows, group, expected) in [
        (attention, 1, 192),
        (attention, 3, 64),
        (attention, 5, 38),
        (attention, 8, 24),
        (attention, 96, 2),
        (attention, 97, 1),
        (attention, 192, 1),
        // At least one token, however many heads share the KV head: of MLA's absorbed form all do.
        (attention, 193, 1),
        (attention, 1000, 1),
        (expanded, 1, 576),
        (expanded, 2, 288),
    ] {
        assert_eq!(TaskCut { rows, staging: 0 }.tokens(group), expected, "{rows} rows, {group} heads");
    }
}

/// A plan for steps of up to so many tokens and sequences.
fn planned(spec: &AttentionSpec, max_tokens: usize, max_sequences: usize) -> CpuAttentionPlan {
    let capacity =
        AttentionCapacity { max_tokens, max_sequences, max_blocks_per_sequence: 1, cache_blocks: 1 };
    let cut = TaskCut { rows: crate::attention::TASK_ROWS, staging: 0 };
    CpuAttentionPlan::new("attention", spec, &capacity, cut, 1).unwrap()
}

/// A step of sequences with so many tokens each.
fn step(plan: &mut CpuAttentionPlan, lengths: &[usize]) {
    let mut cu_seqlens = vec![0];
    for length in lengths {
        cu_seqlens.push(cu_seqlens[cu_seqlens.len() - 1] + *length as u32);
    }
    plan.update(&AttentionStep {
        cu_seqlens: &cu_seqlens,
        kv_lens: &vec![1; lengths.len()],
        kv_ranges: &[],
        block_table: &vec![0; lengths.len()],
        tree_parents: &vec![-1; if plan.spec.mask == Mask::Tree { lengths.iter().sum() } else { 0 }],
    });
}

/// Tokens of each task of a step, in the order in which they are claimed.
fn tasks(query_heads: usize, kv_heads: usize, lengths: &[usize]) -> Vec<(usize, usize, usize)> {
    let spec = AttentionSpec::causal(query_heads, KvSpec::new(1, kv_heads, 64));
    let mut plan = planned(&spec, lengths.iter().sum(), lengths.len());
    step(&mut plan, lengths);
    plan.tasks.iter().map(|task| (task.sequence, task.kv_head, task.tokens.len())).collect()
}

#[test]
fn a_step_is_cut_by_sequence_by_rows_and_by_kv_head() {
    assert_eq!(tasks(4, 4, &[]), []);
    assert_eq!(tasks(4, 4, &[0]), []);
    assert_eq!(tasks(1, 1, &[1]), [(0, 0, 1)]);
    // Decode: a task for each sequence and KV head.
    assert_eq!(tasks(6, 2, &[1, 1]), [(0, 0, 1), (0, 1, 1), (1, 0, 1), (1, 1, 1)]);
    // Prefill at, below and above the edge of a task; its last tokens first.
    assert_eq!(tasks(3, 1, &[63]), [(0, 0, 63)]);
    assert_eq!(tasks(3, 1, &[64]), [(0, 0, 64)]);
    assert_eq!(tasks(3, 1, &[65]), [(0, 0, 1), (0, 0, 64)]);
    assert_eq!(tasks(192, 1, &[2]), [(0, 0, 1), (0, 0, 1)]);
    assert_eq!(tasks(1, 1, &[193, 0, 1]), [(0, 0, 1), (0, 0, 192), (2, 0, 1)]);
}

#[test]
fn a_plan_allocates_once() {
    for mask in [Mask::Causal, Mask::Tree] {
        // 64 tokens a task.
        let spec = AttentionSpec::causal(6, KvSpec::new(1, 2, 64)).with_mask(mask);
        for (max_tokens, max_sequences, most, steps) in [
            (0, 3, 0, &[&[][..], &[0, 0, 0]][..]),
            (3, 0, 0, &[&[]]),
            (1, 1, 1, &[&[1]]),
            (64, 1, 1, &[&[64], &[1]]),
            (65, 1, 2, &[&[65], &[64]]),
            (65, 2, 2, &[&[65], &[1, 64], &[32, 33]]),
            (66, 2, 3, &[&[1, 65], &[65, 1], &[66]]),
            (3, 9, 3, &[&[1, 0, 1, 0, 1], &[3, 0, 0, 0, 0, 0, 0, 0, 0]]),
            (200, 3, 6, &[&[1, 1, 198], &[65, 65, 70], &[200, 0, 0]]),
        ] {
            let mut plan = planned(&spec, max_tokens, max_sequences);
            assert_eq!(plan.most_tasks(), 2 * most, "{max_tokens} tokens, {max_sequences} sequences");
            let room = |plan: &CpuAttentionPlan| {
                let CpuAttentionPlan { kv_lens, kv_ranges, block_table, tree_parents, tasks, .. } = plan;
                let tables = [kv_lens.capacity(), kv_ranges.capacity(), block_table.capacity()];
                (tables, tree_parents.capacity(), tasks.capacity())
            };
            let (before, mut reached) = (room(&plan), 0);
            for lengths in steps {
                step(&mut plan, lengths);
                assert_eq!(room(&plan), before, "{mask:?}: {lengths:?}");
                reached = reached.max(plan.tasks.len());
            }
            // The bound is exact.
            assert_eq!(reached, 2 * most, "{max_tokens} tokens, {max_sequences} sequences");
        }
    }
}
