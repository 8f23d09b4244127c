//! A sequence prefilled whole, in chunks, decoded, alone and in company.

use crate::{
    attention::{COMPUTES, Fill, Filled, Tokens, bits_apart, fill, parted, parted_at_random},
    case::{Fault, Shown, Verdict},
    judge::same_bits,
    ledger::denied,
    poison::{Guarded, Layout},
    random::Rng,
};
use halite_kernels::{
    Backend, DType, Stream, Tensor,
    attention::{
        AttentionArgs, AttentionCapacity, AttentionMergeArgs, AttentionMergeSpec, AttentionOut,
        AttentionPart, AttentionSpec, AttentionStep, Mask, Sinks, alibi_slopes,
    },
    cache::{KvCacheInfo, KvFormat, KvSpec},
};
use std::ops::Range;

/// Positions of the sequence that is watched.
const LENGTH: usize = 300;

pub(super) fn bodies<B: Backend>() -> Vec<Shown<B>> {
    vec![
        ("chunks of 1, 16, 100 and all", chunks),
        ("alone and in company", company),
        ("rows that see all, among others and alone", bidirectional),
        ("in several calls, each going on from the one before", apart),
        ("merged rows, among others and alone", merged),
    ]
}

fn specs<B: Backend>(device: &B) -> Vec<AttentionSpec> {
    let mut specs = Vec::new();
    for dtype in [DType::F32, DType::F16, DType::Bf16] {
        for (query_heads, kv_heads, head_dim, split) in [(9, 3, 64, 256), (5, 1, 33, 64), (4, 2, 128, 16)] {
            let kv = KvSpec::new(1, kv_heads, head_dim).with_dtype(dtype);
            specs.push(AttentionSpec::causal(query_heads, kv).with_kv_split(split));
        }
    }
    let int8 = KvSpec::new(1, 1, 33).with_format(KvFormat::Int8PerTokenHead);
    let int8 = AttentionSpec::causal(5, int8).with_kv_split(64);
    specs.extend(COMPUTES.map(|compute| int8.clone().with_compute(compute)));
    // Queries of other types, over floats and in INT8.
    let half = KvSpec::new(1, 2, 40).with_dtype(DType::F16).with_value_head_dim(24);
    let half = AttentionSpec::causal(6, half).with_kv_split(64);
    specs.extend([half.with_dtype(DType::Bf16), int8.with_compute(COMPUTES[2]).with_dtype(DType::F16)]);
    for (query_heads, rank, rope_dim, split) in [(16, 40, 6, 64), (5, 64, 16, 256)] {
        let kv = KvSpec::latent(1, rank, rope_dim);
        specs.push(AttentionSpec::causal(query_heads, kv).with_kv_split(split));
    }
    // Windows that begin within a part, at its edge and in the same part as the row; scores about the cap.
    for (kv_heads, split, window, cap) in [(1, 256, 100, 0.5), (1, 64, 64, 2.0), (2, 16, 5, 50.0)] {
        let kv = KvSpec::new(1, kv_heads, 24).with_dtype(DType::Bf16);
        let spec = AttentionSpec::causal(3 * kv_heads, kv).with_kv_split(split);
        specs.push(spec.clone().with_soft_cap(cap));
        specs.push(spec.with_soft_cap(cap).with_mask(Mask::Sliding { window }));
    }
    // Chunks that begin within a part and at its edge; sinks and slopes.
    for (kv_heads, split, chunk) in [(1, 256, 100), (2, 64, 128), (1, 16, 5)] {
        let kv = KvSpec::new(1, kv_heads, 24).with_dtype(DType::F16).with_value_head_dim(20);
        let spec = AttentionSpec::causal(3 * kv_heads, kv).with_kv_split(split);
        specs.push(spec.clone().with_mask(Mask::Chunked { chunk }).with_sinks(Sinks::PerHead));
        let biased = spec.with_alibi_slopes(alibi_slopes(3 * kv_heads)).with_sinks(Sinks::PerHead);
        specs.push(if split == 256 { biased } else { biased.with_mask(Mask::Sliding { window: chunk }) });
    }
    // Heads and blocks of whole vectors: few rows may read such a cache where it lies.
    let int8 = |head_dim| KvSpec::new(1, 2, head_dim).with_format(KvFormat::Int8PerTokenHead);
    specs.push(AttentionSpec::causal(6, int8(64)).with_kv_split(64));
    let wider = AttentionSpec::causal(2, int8(40).with_value_head_dim(96).with_block_size(48));
    let window = Mask::Sliding { window: 50 };
    specs.push(wider.with_kv_split(32).with_sinks(Sinks::PerHead).with_mask(window));
    let runs = |spec: &AttentionSpec| {
        !denied(device.cache_supports(&spec.kv)) && !denied(device.attention_supports(spec))
    };
    specs.into_iter().filter(runs).collect()
}

/// One sequence's part in a step: which of the filled sequences, and which of its positions are queries.
type Part = (usize, Range<usize>);

/// One step over already filled caches; each part's output and log-sum-exp, as bytes.
fn step<B: Backend>(
    device: &B,
    stream: &mut B::Stream,
    spec: &AttentionSpec,
    (tokens, filled): (&[Tokens], &Filled<B>),
    parts: &[Part],
) -> Result<Vec<Vec<u8>>, Fault> {
    let (mut cu_seqlens, mut kv_lens, mut table, mut q) = (vec![0], Vec::new(), Vec::new(), Vec::new());
    let width = spec.query_heads * spec.kv.head_dim;
    let mut total = 0;
    for (sequence, positions) in parts {
        total += positions.len();
        cu_seqlens.push(total as u32);
        kv_lens.push(positions.end as u32);
        table.extend_from_slice(&filled.table[sequence * filled.row..][..filled.row]);
        q.extend_from_slice(&tokens[*sequence].q[positions.start * width..positions.end * width]);
    }
    let capacity = AttentionCapacity {
        max_tokens: total,
        max_sequences: parts.len(),
        max_blocks_per_sequence: filled.row,
        cache_blocks: filled.cache.blocks(),
    };
    let mut plan = device.attention_plan(spec, &capacity)?;
    let checked = AttentionStep {
        cu_seqlens: &cu_seqlens,
        kv_lens: &kv_lens,
        kv_ranges: &[],
        block_table: &table,
        tree_parents: &[],
    }
    .check(&plan)?;
    device.attention_update(stream, &mut plan, &checked)?;
    stream.reserve(device.attention_workspace(&plan))?;
    let dims = [total, spec.query_heads, spec.kv.head_dim];
    let q = Guarded::<B>::input(stream, spec.dtype, &q, &dims, Layout::Dense)?.0;
    let dims = [total, spec.query_heads, spec.kv.value_head_dim];
    let out = Guarded::<B>::output(stream, spec.dtype, &dims, Layout::Dense)?;
    let lse = Guarded::<B>::output(stream, DType::F32, &dims[..2], Layout::Dense)?;
    let sinks: Vec<f32> = (0..spec.query_heads).map(|head| head as f32 - 1.0).collect();
    let sinks = Tensor::<B>::from_slice(stream, &sinks, &[spec.query_heads])?;
    let args = AttentionArgs {
        plan: &plan,
        cache: &filled.cache,
        layer: 0,
        q: &q.view,
        state_in: None,
        out: AttentionOut::Normalised(&out.view),
        sinks: (spec.sinks == Sinks::PerHead).then_some(&sinks),
        log_sum_exp: Some(&lse.view),
    };
    device.attention(stream, args.check()?)?;
    let (out, lse) = (out.read_bytes(stream)?, lse.read_bytes(stream)?);
    let out_row = spec.query_heads * spec.kv.value_head_dim * spec.dtype.size();
    let lse_row = spec.query_heads * 4;
    let rows = cu_seqlens.windows(2).map(|pair| pair[0] as usize..pair[1] as usize);
    Ok(rows
        .map(|rows| {
            let row =
                |row: usize| [&out[row * out_row..][..out_row], &lse[row * lse_row..][..lse_row]].concat();
            rows.flat_map(row).collect()
        })
        .collect())
}

/// Sequences of these lengths, every position of each with a query.
fn sequences<B: Backend>(
    device: &B,
    stream: &mut B::Stream,
    spec: &AttentionSpec,
    lengths: &[usize],
) -> Result<(Vec<Tokens>, Filled<B>), Fault> {
    let mut rng = Rng::new(21);
    let tokens: Vec<Tokens> =
        lengths.iter().map(|&length| Tokens::new(&mut rng, spec, Fill::Away, length, length)).collect();
    let filled = fill(device, stream, spec, 0, &tokens, 4)?;
    Ok((tokens, filled))
}

fn chunks<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    for spec in specs(device) {
        let (tokens, filled) = sequences(device, stream, &spec, &[LENGTH])?;
        let all = (&tokens[..], &filled);
        let whole = step(device, stream, &spec, all, &[(0, 0..LENGTH)])?.concat();
        for chunk in [1, 16, 100, 7] {
            let mut pieces = Vec::new();
            for start in (0..LENGTH).step_by(chunk) {
                let part = (0, start..(start + chunk).min(LENGTH));
                pieces.extend(step(device, stream, &spec, all, &[part])?.concat());
            }
            same_bits(&format!("{spec:?} in chunks of {chunk}"), &pieces, &whole)?;
        }
    }
    Ok(())
}

fn company<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    for spec in specs(device) {
        let lengths = [LENGTH, 5, 17, 64, 129, 1, 260];
        let (tokens, filled) = sequences(device, stream, &spec, &lengths)?;
        let all = (&tokens[..], &filled);
        // Prefill, chunks and decodes, each in another order.
        let steps: [Vec<Part>; 4] = [
            (0..7).map(|s| (s, lengths[s] - 1..lengths[s])).collect(),
            (0..7).rev().map(|s| (s, lengths[s] / 2..lengths[s])).collect(),
            vec![(4, 0..129), (0, 299..300), (6, 100..200), (5, 0..1), (1, 4..5)],
            vec![(2, 3..17), (0, 0..300), (3, 63..64)],
        ];
        for parts in steps {
            let together = step(device, stream, &spec, all, &parts)?;
            for (part, together) in parts.iter().zip(&together) {
                let alone = step(device, stream, &spec, all, std::slice::from_ref(part))?.concat();
                same_bits(&format!("{spec:?}, {part:?} of {parts:?}"), together, &alone)?;
            }
        }
    }
    Ok(())
}

/// Rows that see everything: among others of their sequence, and beside other sequences.
fn bidirectional<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    // One of them with each type of storage, and one with everything else.
    let causal = specs(device).into_iter().filter(|spec| spec.mask == Mask::Causal).step_by(4);
    for spec in causal {
        let spec = spec.with_mask(Mask::Bidirectional);
        let (tokens, filled) = sequences(device, stream, &spec, &[LENGTH, 40])?;
        let all = (&tokens[..], &filled);
        let whole = step(device, stream, &spec, all, &[(1, 0..40), (0, 0..LENGTH)])?;
        let alone = step(device, stream, &spec, all, &[(0, 0..LENGTH)])?.concat();
        same_bits(&format!("{spec:?} beside another sequence"), &whole[1], &alone)?;
        // The last rows of a sequence see what they saw among all of its rows.
        for rows in [1, 16, 100] {
            let last = step(device, stream, &spec, all, &[(0, LENGTH - rows..LENGTH)])?.concat();
            let among = &alone[alone.len() - last.len()..];
            same_bits(&format!("{spec:?}, the last {rows} rows"), &last, among)?;
        }
    }
    Ok(())
}

/// A shared prefix read once, and sequences read range by range, at random.
fn apart<B: Backend>(device: &B) -> Verdict {
    let cases = parted().into_iter().chain((0..40).map(parted_at_random));
    cases.into_iter().try_for_each(|case| bits_apart(device, &case).map(drop))
}

/// Three parts of 40 tokens merged, those of `tokens` only, as bytes.
fn merge<B: Backend>(
    device: &B,
    stream: &mut B::Stream,
    spec: &AttentionMergeSpec,
    tokens: Range<usize>,
) -> Result<Vec<u8>, Fault> {
    let mut rng = Rng::new(8);
    let mut parts = Vec::new();
    for part in 0..3 {
        let out =
            Guarded::<B>::input(stream, spec.dtype, &rng.aways(40 * 3 * 70), &[40, 3, 70], Layout::Dense)?;
        let mut logs = rng.spreads(40 * 3);
        logs.iter_mut().skip(part).step_by(5).for_each(|log| *log = f32::NEG_INFINITY);
        let logs = Tensor::<B>::from_slice(stream, &logs, &[40, 3])?;
        parts.push((out.0.view.narrow(0, tokens.clone())?, logs.narrow(0, tokens.clone())?));
    }
    let parts: Vec<AttentionPart<'_, B>> =
        parts.iter().map(|(out, log_sum_exp)| AttentionPart { out, log_sum_exp }).collect();
    let out = Guarded::<B>::output(stream, spec.dtype, &[tokens.len(), 3, 70], Layout::Dense)?;
    let lse = Guarded::<B>::output(stream, DType::F32, &[tokens.len(), 3], Layout::Dense)?;
    let args = AttentionMergeArgs { spec, parts: &parts, out: &out.view, log_sum_exp: Some(&lse.view) };
    device.attention_merge(stream, args.check()?)?;
    Ok([out.read_bytes(stream)?, lse.read_bytes(stream)?].concat())
}

fn merge_specs<B: Backend>(device: &B) -> Vec<AttentionMergeSpec> {
    let specs = [DType::F32, DType::F16].map(|dtype| AttentionMergeSpec::new().with_dtype(dtype));
    let runs = |spec: &AttentionMergeSpec| !denied(device.attention_merge_supports(spec));
    specs.into_iter().filter(runs).collect()
}

fn merged<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    for spec in merge_specs(device) {
        let whole = merge(device, stream, &spec, 0..40)?;
        let row = 3 * 70 * spec.dtype.size();
        for token in [0, 1, 7, 25, 39] {
            let alone = merge(device, stream, &spec, token..token + 1)?;
            let among = [&whole[token * row..][..row], &whole[40 * row + token * 12..][..12]].concat();
            same_bits(&format!("{spec:?}, token {token} alone"), &alone, &among)?;
        }
    }
    Ok(())
}

/// Results of a mixed step, for comparisons between devices.
pub(super) fn prints<B: Backend>(device: &B) -> Result<Vec<(String, Vec<u8>)>, Fault> {
    let stream = &mut device.stream()?;
    let mut prints = Vec::new();
    for spec in specs(device) {
        let (tokens, filled) = sequences(device, stream, &spec, &[LENGTH, 40, 17])?;
        let parts = [(0, 0..LENGTH), (1, 39..40), (2, 5..17)];
        let out = step(device, stream, &spec, (&tokens[..], &filled), &parts)?;
        prints.push((format!("{spec:?}"), out.concat()));
        let out = step(device, stream, &spec, (&tokens[..], &filled), &[(0, 299..300)])?;
        prints.push((format!("{spec:?}, one row"), out.concat()));
    }
    for case in parted().iter().step_by(5) {
        // In several calls the bits are those of one, which are told.
        prints.extend(bits_apart(device, case)?.map(|bits| (format!("{case:?}"), bits)));
    }
    for spec in merge_specs(device) {
        prints.push((format!("{spec:?}"), merge(device, stream, &spec, 0..40)?));
    }
    Ok(prints)
}
