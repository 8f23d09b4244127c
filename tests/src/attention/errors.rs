//! Bad arguments of attention.

use crate::{
    case::{Fault, Shown, Verdict},
    judge::refused,
    poison::{Guarded, Layout},
};
use halite_kernels::{
    Backend, DType,
    attention::{
        AttentionArgs, AttentionCapacity, AttentionCompute, AttentionOut, AttentionSpec, AttentionState,
        AttentionStep, Mask, Sinks, ValueProducts,
    },
    cache::{KvFormat, KvSpec},
};
use std::ops::Range;

pub(super) fn bodies<B: Backend>() -> Vec<Shown<B>> {
    vec![
        ("specs that make no sense", specs),
        ("steps beyond the plan", steps),
        ("parents that are no tree", trees),
        ("ranges that are cut elsewhere", ranges),
        ("states that do not fit", states),
        ("sinks that do not fit", sinks),
        ("tensors and caches that do not fit", tensors),
    ]
}

fn kv() -> KvSpec {
    KvSpec::new(2, 2, 8).with_block_size(4).with_dtype(DType::F32).with_value_head_dim(6)
}

const CAPACITY: AttentionCapacity =
    AttentionCapacity { max_tokens: 4, max_sequences: 2, max_blocks_per_sequence: 3, cache_blocks: 5 };

fn specs<B: Backend>(device: &B) -> Verdict {
    let spec = || AttentionSpec::causal(4, kv());
    for (argument, spec) in [
        ("query_heads", AttentionSpec::causal(0, kv())),
        ("query_heads", AttentionSpec::causal(3, kv())),
        ("kv_split", spec().with_kv_split(0)),
        ("kv_split", spec().with_kv_split(24)),
        ("scale", spec().with_scale(f32::NAN)),
        ("scale", spec().with_scale(f32::INFINITY)),
        ("window", spec().with_mask(Mask::Sliding { window: 0 })),
        ("chunk", spec().with_mask(Mask::Chunked { chunk: 0 })),
        ("alibi_slopes", spec().with_alibi_slopes(vec![0.5; 3])),
        ("alibi_slopes", spec().with_alibi_slopes(vec![0.5, 0.5, 0.5, f32::NAN])),
        ("alibi_slopes", spec().with_alibi_slopes(vec![0.5; 4]).with_mask(Mask::Tree)),
        ("soft_cap", spec().with_soft_cap(0.0)),
        ("soft_cap", spec().with_soft_cap(-50.0)),
        ("soft_cap", spec().with_soft_cap(f32::NAN)),
        ("soft_cap", spec().with_soft_cap(f32::INFINITY)),
    ] {
        refused("attention", argument, spec.check())?;
        refused("attention", argument, device.attention_plan(&spec, &CAPACITY))?;
    }
    // INT8 needs INT8 keys and values, and sums that i32 holds.
    let int8 = |values| spec().with_compute(AttentionCompute::Int8 { values });
    let mut wide = int8(ValueProducts::Float);
    wide.kv = wide.kv.with_format(KvFormat::Int8PerTokenHead);
    let mut long = int8(ValueProducts::Int8).with_kv_split(1 << 17);
    long.kv = wide.kv.clone();
    wide.kv.head_dim = 132_105;
    for (argument, spec) in [("compute", int8(ValueProducts::Float)), ("head_dim", wide), ("kv_split", long)]
    {
        refused("attention", argument, spec.check())?;
        refused("attention", argument, device.attention_plan(&spec, &CAPACITY))?;
    }
    // What is wrong with the cache's spec, the cache's check says.
    let no_heads = AttentionSpec::causal(4, KvSpec::new(2, 0, 8));
    refused("cache", "kv_heads", no_heads.check())?;
    refused("cache", "kv_heads", device.attention_plan(&no_heads, &CAPACITY))?;
    let no_dim = AttentionSpec::causal(4, KvSpec::new(2, 2, 0));
    refused("cache", "head_dim", device.attention_plan(&no_dim, &CAPACITY))
}

fn steps<B: Backend>(device: &B) -> Verdict {
    let plan = device.attention_plan(&AttentionSpec::causal(4, kv()), &CAPACITY)?;
    let table = [0, 1, 2, 3, 4, -1];
    let step = |cu_seqlens, kv_lens, block_table| AttentionStep {
        cu_seqlens,
        kv_lens,
        kv_ranges: &[],
        block_table,
        tree_parents: &[],
    };
    for (argument, step) in [
        ("sequences", step(&[0, 1, 2, 3], &[1, 1, 1], &table)),
        ("tokens", step(&[0, 2, 5], &[2, 3], &table)),
        ("cu_seqlens", step(&[0, 1], &[1, 1], &table)),
        ("cu_seqlens", step(&[], &[], &[])),
        ("cu_seqlens", step(&[1, 2, 3], &[1, 1], &table)),
        ("cu_seqlens", step(&[0, 2, 1], &[1, 1], &table)),
        ("block_table", step(&[0, 1, 2], &[1, 1], &table[..5])),
        ("block_table", step(&[0, 1, 2], &[1, 1], &[0, 1, 2, 5, -1, -1])),
        ("block_table", step(&[0, 1, 2], &[1, 9], &table)),
        ("block_table", step(&[0, 1, 2], &[1, 1], &[-1, 1, 2, 3, 4, 4])),
        ("block_table", step(&[0, 1, 2], &[1, 1], &[i32::MIN, 1, 2, 3, 4, 4])),
        ("blocks of a sequence", step(&[0, 1, 2], &[13, 1], &table)),
        ("blocks of a sequence", step(&[0, 1, 2], &[u32::MAX, 1], &table)),
    ] {
        refused("attention", argument, step.check(&plan))?;
    }
    // What is not read may be anything; no sequences at all is a step too.
    step(&[0, 1, 2], &[5, 8], &[0, 4, 99, 1, 1, i32::MIN]).check(&plan)?;
    step(&[0], &[], &[]).check(&plan)?;
    // A step belongs to plans of the limits that it was checked against.
    let fits = step(&[0, 1, 2], &[5, 8], &[0, 4, 99, 1, 1, i32::MIN]).check(&plan)?;
    let stream = &mut device.stream()?;
    for (spec, capacity) in [
        (kv(), AttentionCapacity { cache_blocks: 4, ..CAPACITY }),
        (kv(), AttentionCapacity { max_tokens: 2, ..CAPACITY }),
        (kv().with_block_size(2), CAPACITY),
    ] {
        let mut other = device.attention_plan(&AttentionSpec::causal(4, spec), &capacity)?;
        refused("attention", "step", device.attention_update(stream, &mut other, &fits))?;
    }
    Ok(())
}

fn ranges<B: Backend>(device: &B) -> Verdict {
    // Parts of 16 positions, blocks of 4: the second sequence ends within a part.
    let spec = AttentionSpec::causal(4, kv()).with_kv_split(16);
    let capacity = AttentionCapacity { max_blocks_per_sequence: 12, cache_blocks: 24, ..CAPACITY };
    let plan = device.attention_plan(&spec, &capacity)?;
    let table: Vec<i32> = (0..24).collect();
    let step = |kv_ranges, block_table| AttentionStep {
        cu_seqlens: &[0, 1, 2],
        kv_lens: &[48, 21],
        kv_ranges,
        block_table,
        tree_parents: &[],
    };
    for good in [&[][..], &[0..48, 0..21], &[16..32, 16..21], &[48..48, 0..0], &[0..16, 16..16]] {
        step(good, &table).check(&plan)?;
    }
    // One range, three, cut within a part, beyond the sequence, and from right to left.
    let (one, turned) = (0..48, Range { start: 32, end: 16 });
    let bad = [
        std::slice::from_ref(&one),
        &[0..48, 0..21, 0..21],
        &[4..48, 0..21],
        &[0..40, 0..21],
        &[0..48, 0..20],
        &[0..48, 16..32],
        &[0..48, 21..21],
        &[turned, 0..21],
        &[0..u32::MAX, 0..21],
    ];
    for ranges in bad {
        refused("attention", "kv_ranges", step(ranges, &table).check(&plan))?;
    }
    // Blocks of which nothing is read may be anything, others not.
    let mut holes = table.clone();
    (holes[3], holes[8], holes[12]) = (-1, i32::MIN, 99);
    step(&[16..32, 16..21], &holes).check(&plan)?;
    step(&[16..32, 0..0], &holes).check(&plan)?;
    refused("attention", "block_table", step(&[0..32, 16..21], &holes).check(&plan))?;
    refused("attention", "block_table", step(&[16..48, 16..21], &holes).check(&plan))?;
    refused("attention", "block_table", step(&[16..32, 0..21], &holes).check(&plan))?;
    // What is read must fit the table's rows; the sequence need not.
    let long = AttentionStep { kv_lens: &[480, 21], ..step(&[0..48, 0..21], &table) };
    long.check(&plan)?;
    let beyond = AttentionStep { kv_ranges: &[0..64, 0..21], ..long };
    refused("attention", "blocks of a sequence", beyond.check(&plan))?;
    // Ranges belong to plans that cut at the same positions.
    let halves = device.attention_plan(&AttentionSpec::causal(4, kv()).with_kv_split(32), &capacity)?;
    refused("attention", "kv_ranges", step(&[16..48, 0..21], &table).check(&halves))?;
    let (mut other, stream) = (halves, &mut device.stream()?);
    let fits = step(&[16..48, 0..21], &table).check(&plan)?;
    refused("attention", "step", device.attention_update(stream, &mut other, &fits))
}

fn states<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let spec = AttentionSpec::causal(4, kv());
    let table = [0, 9, 9, 1, 9, 9];
    let step = AttentionStep {
        cu_seqlens: &[0, 2, 3],
        kv_lens: &[2, 3],
        kv_ranges: &[],
        block_table: &table,
        tree_parents: &[],
    };
    let mut plan = device.attention_plan(&spec, &CAPACITY)?;
    let mut with_sinks = device.attention_plan(&spec.with_sinks(Sinks::PerHead), &CAPACITY)?;
    for plan in [&mut plan, &mut with_sinks] {
        let step = step.check(plan)?;
        device.attention_update(stream, plan, &step)?;
    }
    let cache = device.kv_cache(&kv(), 5)?;
    let mut tensor = |dtype, dims: &[usize]| Guarded::<B>::output(stream, dtype, dims, Layout::Dense);
    let (q, out, sinks) =
        (tensor(DType::F32, &[3, 4, 8])?, tensor(DType::F32, &[3, 4, 6])?, tensor(DType::F32, &[4])?);
    let mut tensors = || -> Result<[Guarded<B>; 3], Fault> {
        Ok([tensor(DType::F32, &[3, 4])?, tensor(DType::F32, &[3, 4])?, tensor(DType::F32, &[3, 4, 6])?])
    };
    let (read, written) = (tensors()?, tensors()?);
    let (short, half) = (tensor(DType::F32, &[3, 2])?, tensor(DType::F16, &[3, 4])?);
    let (flat, lse) = (tensor(DType::F32, &[3, 24])?, tensor(DType::F32, &[3, 4])?);
    let [max, sum, values] = &read;
    let from = AttentionState { max: &max.view, sum: &sum.view, values: &values.view };
    let [max, sum, values] = &written;
    let to = AttentionState { max: &max.view, sum: &sum.view, values: &values.view };
    let args = |state_in, out| AttentionArgs::<B> {
        plan: &plan,
        cache: &cache,
        layer: 0,
        q: &q.view,
        state_in: Some(state_in),
        out,
        sinks: None,
        log_sum_exp: None,
    };
    let normalised = AttentionOut::Normalised(&out.view);
    args(from, normalised).check()?;
    args(from, AttentionOut::State(to)).check()?;
    for (argument, state_in) in [
        ("state_in.max", AttentionState { max: &short.view, ..from }),
        ("state_in.max", AttentionState { max: &half.view, ..from }),
        ("state_in.sum", AttentionState { sum: &half.view, ..from }),
        ("state_in.values", AttentionState { values: &flat.view, ..from }),
        ("state_in.values", AttentionState { values: &q.view, ..from }),
        // In place.
        ("out", AttentionState { values: &out.view, ..from }),
    ] {
        refused("attention", argument, args(state_in, normalised).check())?;
    }
    for (argument, state) in [
        ("out.max", AttentionState { max: &short.view, ..to }),
        ("out.sum", AttentionState { sum: &half.view, ..to }),
        ("out.values", AttentionState { values: &flat.view, ..to }),
        ("out.values", AttentionState { values: from.values, ..to }),
        ("out.max", AttentionState { max: from.max, ..to }),
        ("out.sum", AttentionState { sum: from.max, ..to }),
        ("out.max", AttentionState { max: to.sum, ..to }),
    ] {
        refused("attention", argument, args(from, AttentionOut::State(state)).check())?;
    }
    // A state has neither sinks nor a log-sum-exp, whatever the plan.
    let handed_on = || args(from, AttentionOut::State(to));
    let log_sum_exp = Some(&lse.view);
    refused("attention", "log_sum_exp", AttentionArgs { log_sum_exp, ..handed_on() }.check())?;
    for plan in [&plan, &with_sinks] {
        AttentionArgs { plan, ..handed_on() }.check()?;
        let sinks = Some(&sinks.view);
        refused("attention", "sinks", AttentionArgs { plan, sinks, ..handed_on() }.check())?;
    }
    refused("attention", "sinks", AttentionArgs { plan: &with_sinks, ..args(from, normalised) }.check())?;
    written.iter().chain(&read).try_for_each(|tensor| tensor.untouched(stream))
}

fn trees<B: Backend>(device: &B) -> Verdict {
    let spec = AttentionSpec::causal(4, kv());
    let plain = device.attention_plan(&spec, &CAPACITY)?;
    let mut plan = device.attention_plan(&spec.with_mask(Mask::Tree), &CAPACITY)?;
    let table = [0, 1, 2, 3, 4, -1];
    let step = |kv_lens, tree_parents| AttentionStep {
        cu_seqlens: &[0, 3, 4],
        kv_lens,
        kv_ranges: &[],
        block_table: &table,
        tree_parents,
    };
    for (argument, step) in [
        ("tree_parents", step(&[3, 5], &[])),
        ("tree_parents", step(&[3, 5], &[-1, 0, 1])),
        ("tree_parents", step(&[3, 5], &[-1, 0, 1, -1, -1])),
        // A row that is its own parent, one that comes later, one of another sequence, and no row at all.
        ("tree_parents", step(&[3, 5], &[0, 0, 1, -1])),
        ("tree_parents", step(&[3, 5], &[-1, 2, 1, -1])),
        ("tree_parents", step(&[3, 5], &[-1, 0, 1, 2])),
        ("tree_parents", step(&[3, 5], &[-1, -2, 1, -1])),
        ("tree_parents", step(&[3, 5], &[-1, 0, i32::MAX, -1])),
        // More rows than positions.
        ("kv_lens", step(&[2, 5], &[-1, 0, 1, -1])),
    ] {
        refused("attention", argument, step.check(&plan))?;
    }
    refused("attention", "tree_parents", step(&[3, 5], &[-1, 0, 1, -1]).check(&plain))?;
    // A step without parents is for masks without a tree, and the other way round.
    let straight = step(&[3, 5], &[]).check(&plain)?;
    let stream = &mut device.stream()?;
    refused("attention", "step", device.attention_update(stream, &mut plan, &straight))?;
    step(&[3, 5], &[-1, 0, 0, -1]).check(&plan).map(drop).map_err(Into::into)
}

fn sinks<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let spec = AttentionSpec::causal(4, kv());
    let plain = device.attention_plan(&spec, &CAPACITY)?;
    let with_sinks = device.attention_plan(&spec.with_sinks(Sinks::PerHead), &CAPACITY)?;
    let cache = device.kv_cache(&kv(), 5)?;
    let mut tensor = |dtype, dims: &[usize]| Guarded::<B>::output(stream, dtype, dims, Layout::Dense);
    let (q, out) = (tensor(DType::F32, &[0, 4, 8])?, tensor(DType::F32, &[0, 4, 6])?);
    let (sinks, half) = (tensor(DType::F32, &[4])?, tensor(DType::F16, &[4])?);
    let (few, flat) = (tensor(DType::F32, &[2])?, tensor(DType::F32, &[1, 4])?);
    let args = |plan, sinks| AttentionArgs::<B> {
        plan,
        cache: &cache,
        layer: 0,
        q: &q.view,
        state_in: None,
        out: AttentionOut::Normalised(&out.view),
        sinks,
        log_sum_exp: None,
    };
    for args in [
        args(&plain, Some(&sinks.view)),
        args(&with_sinks, None),
        args(&with_sinks, Some(&half.view)),
        args(&with_sinks, Some(&few.view)),
        args(&with_sinks, Some(&flat.view)),
    ] {
        refused("attention", "sinks", args.check())?;
    }
    args(&with_sinks, Some(&sinks.view)).check().map(drop).map_err(Into::into)
}

fn tensors<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let mut plan = device.attention_plan(&AttentionSpec::causal(4, kv()), &CAPACITY)?;
    let step = AttentionStep {
        cu_seqlens: &[0, 2, 3],
        kv_lens: &[2, 3],
        kv_ranges: &[],
        block_table: &[0, 9, 9, 1, 9, 9],
        tree_parents: &[],
    };
    let step = step.check(&plan)?;
    device.attention_update(stream, &mut plan, &step)?;
    let cache = device.kv_cache(&kv(), 5)?;
    let small = device.kv_cache(&kv(), 4)?;
    let other = device.kv_cache(&kv().with_block_size(8), 5)?;
    let mut tensor = |dtype, dims: &[usize]| Guarded::<B>::output(stream, dtype, dims, Layout::Dense);
    let (q, q_half, q_long) =
        (tensor(DType::F32, &[3, 4, 8])?, tensor(DType::F16, &[3, 4, 8])?, tensor(DType::F32, &[4, 4, 8])?);
    let (out, out_half, flat) =
        (tensor(DType::F32, &[3, 4, 6])?, tensor(DType::F16, &[3, 4, 6])?, tensor(DType::F32, &[3, 24])?);
    let (lse, short) = (tensor(DType::F32, &[3, 4])?, tensor(DType::F32, &[3, 2])?);
    let inside_q = q.view.narrow(2, 0..6)?;
    let inside_out = out.view.narrow(2, 0..4)?.narrow(1, 0..1)?;
    let plain = || AttentionArgs::<B> {
        plan: &plan,
        cache: &cache,
        layer: 1,
        q: &q.view,
        state_in: None,
        out: AttentionOut::Normalised(&out.view),
        sinks: None,
        log_sum_exp: Some(&lse.view),
    };
    plain().check()?;
    for (argument, args) in [
        ("cache", AttentionArgs { cache: &small, ..plain() }),
        ("cache", AttentionArgs { cache: &other, ..plain() }),
        ("layer", AttentionArgs { layer: 2, ..plain() }),
        ("q", AttentionArgs { q: &q_half.view, ..plain() }),
        ("q", AttentionArgs { q: &q_long.view, ..plain() }),
        ("q", AttentionArgs { q: &out.view, ..plain() }),
        ("out", AttentionArgs { out: AttentionOut::Normalised(&out_half.view), ..plain() }),
        ("out", AttentionArgs { out: AttentionOut::Normalised(&flat.view), ..plain() }),
        ("out", AttentionArgs { out: AttentionOut::Normalised(&inside_q), ..plain() }),
        ("log_sum_exp", AttentionArgs { log_sum_exp: Some(&short.view), ..plain() }),
        ("log_sum_exp", AttentionArgs { log_sum_exp: Some(&q.view), ..plain() }),
        ("out", AttentionArgs { log_sum_exp: Some(&inside_out), ..plain() }),
    ] {
        refused("attention", argument, args.check())?;
    }
    out.untouched(stream)?;
    lse.untouched(stream)
}
