//! A prefix that sequences share, read once for all of their rows, and the rest of each: what attention over whole
//! sequences gives.

use super::{Fill, Filled, Tokens, fill};
use crate::{
    case::{Fault, Verdict, ensure},
    judge::{judge, unsupported},
    ledger::denied,
    oracle::attention::{Partial, Sequence, attend, merge},
    poison::{Guarded, Layout, stored},
    random::Rng,
    tolerance::Bound,
};
use halite_kernels::{
    Backend, DType, Stream, Tensor,
    attention::{
        AttentionArgs, AttentionCapacity, AttentionMergeArgs, AttentionMergeSpec, AttentionOut,
        AttentionPart, AttentionSpec, AttentionStep, Mask, Sinks,
    },
    cache::{KvCacheInfo, KvSpec},
};

/// One step whose sequences begin with the same positions.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub(crate) struct CascadeCase {
    /// Of the rest; the prefix is read without a mask and without sinks.
    pub spec: AttentionSpec,
    /// Shared positions, a multiple of the block size.
    pub prefix: usize,
    /// Query rows of each sequence, and its positions after the prefix.
    pub rest: Vec<(usize, usize)>,
}

/// Prefixes that end at splits' edges and elsewhere; rows of decode, chunks and whole rests; sinks, counted once.
pub(super) fn cases() -> Vec<CascadeCase> {
    let mixed = [(1, 1), (5, 5), (1, 70), (20, 130), (0, 9)];
    let mut cases = Vec::new();
    for dtype in [DType::F32, DType::F16, DType::Bf16] {
        for (split, prefix) in [(64, 64), (64, 128), (64, 48), (16, 16), (256, 256)] {
            cases.push(of(dtype, split, prefix, &mixed));
        }
    }
    let mut sinks = of(DType::F32, 64, 64, &mixed);
    sinks.spec = sinks.spec.with_sinks(Sinks::PerHead);
    let mut capped = of(DType::F32, 64, 192, &mixed);
    capped.spec = capped.spec.with_soft_cap(0.5).with_sinks(Sinks::PerHead);
    // 3,072 + 64 positions.
    cases.extend([sinks, capped, of(DType::Bf16, 256, 3072, &[(1, 64)])]);
    cases
}

/// A shared prefix, and the rests.
pub(super) fn of(dtype: DType, split: usize, prefix: usize, rest: &[(usize, usize)]) -> CascadeCase {
    let kv = KvSpec::new(1, 2, 32).with_dtype(dtype).with_value_head_dim(24);
    let spec = AttentionSpec::causal(6, kv).with_kv_split(split);
    CascadeCase { spec, prefix, rest: rest.to_vec() }
}

/// Which positions a call reads.
struct Tables<'a> {
    cu_seqlens: &'a [u32],
    kv_lens: &'a [u32],
    block_table: &'a [i32],
    row: usize,
}

/// Output and log-sum-exp of one call.
type Called<B> = (Guarded<B>, Guarded<B>);

fn call<B: Backend>(
    device: &B,
    stream: &mut B::Stream,
    spec: &AttentionSpec,
    cache: &B::KvCache,
    tables: &Tables<'_>,
    (q, sinks): (&Tensor<B>, &Tensor<B>),
) -> Result<Called<B>, Fault> {
    let tokens = q.dims()[0];
    let capacity = AttentionCapacity {
        max_tokens: tokens,
        max_sequences: tables.kv_lens.len(),
        max_blocks_per_sequence: tables.row,
        cache_blocks: cache.blocks(),
    };
    let mut plan = device.attention_plan(spec, &capacity)?;
    stream.reserve(device.attention_workspace(&plan))?;
    let &Tables { cu_seqlens, kv_lens, block_table, .. } = tables;
    let step =
        AttentionStep { cu_seqlens, kv_lens, kv_ranges: &[], block_table, tree_parents: &[] }.check(&plan)?;
    device.attention_update(stream, &mut plan, &step)?;
    let dims = [tokens, spec.query_heads, spec.kv.value_head_dim];
    let out = Guarded::<B>::output(stream, DType::F32, &dims, Layout::Dense)?;
    let log_sum_exp = Guarded::<B>::output(stream, DType::F32, &dims[..2], Layout::Dense)?;
    let args = AttentionArgs {
        plan: &plan,
        cache,
        layer: 0,
        q,
        state_in: None,
        out: AttentionOut::Normalised(&out.view),
        sinks: (spec.sinks == Sinks::PerHead).then_some(sinks),
        log_sum_exp: Some(&log_sum_exp.view),
    };
    device.attention(stream, args.check()?)?;
    Ok((out, log_sum_exp))
}

pub(super) fn body<B: Backend>(device: &B, case: &CascadeCase) -> Verdict {
    let CascadeCase { spec, prefix, rest } = case;
    let (stream, kv) = (&mut device.stream()?, &spec.kv);
    let (of_prefix, merging) =
        (spec.clone().with_mask(Mask::Bidirectional).with_sinks(Sinks::None), AttentionMergeSpec::new());
    let capacity =
        AttentionCapacity { max_tokens: 1, max_sequences: 1, max_blocks_per_sequence: 1, cache_blocks: 1 };
    for spec in [spec, &of_prefix] {
        if denied(device.attention_supports(spec)) {
            return unsupported("attention", device.attention_plan(spec, &capacity));
        }
    }

    let mut rng = Rng::new(*prefix as u64);
    let mut tokens: Vec<Tokens> = rest
        .iter()
        .map(|&(q_len, len)| Tokens::new(&mut rng, spec, Fill::Away, q_len, prefix + len))
        .collect();
    let (keys, values) = (prefix * kv.kv_heads * kv.head_dim, prefix * kv.kv_heads * kv.value_head_dim);
    let (k, v) = (tokens[0].k[..keys].to_vec(), tokens[0].v[..values].to_vec());
    for tokens in &mut tokens {
        tokens.k[..keys].copy_from_slice(&k);
        tokens.v[..values].copy_from_slice(&v);
    }
    let Filled { cache, table, row } = fill(device, stream, spec, 0, &tokens, 3)?;

    let (blocks, total) = (prefix / kv.block_size, rest.iter().map(|rest| rest.0).sum::<usize>());
    let mut cu_seqlens = vec![0];
    for &(q_len, _) in rest {
        cu_seqlens.push(cu_seqlens[cu_seqlens.len() - 1] + q_len as u32);
    }
    let shared = Tables {
        cu_seqlens: &[0, total as u32],
        kv_lens: &[*prefix as u32],
        block_table: &table[..blocks],
        row: blocks,
    };
    let own_table: Vec<i32> = table.chunks(row).flat_map(|row| row[blocks..].to_vec()).collect();
    let own_lens: Vec<u32> = rest.iter().map(|rest| rest.1 as u32).collect();
    let own =
        Tables { cu_seqlens: &cu_seqlens, kv_lens: &own_lens, block_table: &own_table, row: row - blocks };
    let q: Vec<f32> = tokens.iter().flat_map(|tokens| tokens.q.iter().copied()).collect();
    let q = Tensor::<B>::from_slice(stream, &q, &[total, spec.query_heads, kv.head_dim])?;
    let sinks: Vec<f32> = (0..spec.query_heads).map(|head| head as f32 - 2.0).collect();
    let sinks_in = Tensor::<B>::from_slice(stream, &sinks, &[spec.query_heads])?;
    let first = call(device, stream, &of_prefix, &cache, &shared, (&q, &sinks_in))?;
    let second = call(device, stream, spec, &cache, &own, (&q, &sinks_in))?;
    let part =
        |called: &Called<B>| -> (Tensor<B>, Tensor<B>) { (called.0.view.clone(), called.1.view.clone()) };
    let parts = [part(&first), part(&second)];
    let parts: Vec<AttentionPart<'_, B>> =
        parts.iter().map(|(out, log_sum_exp)| AttentionPart { out, log_sum_exp }).collect();
    let dims = [total, spec.query_heads, kv.value_head_dim];
    let out = Guarded::<B>::output(stream, DType::F32, &dims, Layout::Dense)?;
    let lse = Guarded::<B>::output(stream, DType::F32, &dims[..2], Layout::Dense)?;
    let args =
        AttentionMergeArgs { spec: &merging, parts: &parts, out: &out.view, log_sum_exp: Some(&lse.view) };
    let merged = device.attention_merge(stream, args.check()?);
    if denied(device.attention_merge_supports(&merging)) {
        return unsupported("attention_merge", merged);
    }
    merged?;

    let (mut expected, mut logs) = (Vec::new(), Vec::new());
    for (tokens, &(q_len, len)) in tokens.iter().zip(rest) {
        let told = Told { spec, tokens, q_len, sinks: &sinks };
        let whole = told.attend(0..prefix + len, spec.mask, spec.sinks);
        let parts = [
            told.attend(0..*prefix, Mask::Bidirectional, Sinks::None),
            told.attend(*prefix..prefix + len, spec.mask, spec.sinks),
        ];
        let merged = merge(kv.value_head_dim, &parts);
        // The oracle agrees with itself; what merging may add to the error, its own merge says.
        for (whole, merged) in [(&whole.out, &merged.out), (&whole.log_sum_exp, &merged.log_sum_exp)] {
            let near = |(a, b): (&Bound, &Bound)| (a.value - b.value).abs() <= 1e-12 * (1.0 + a.value.abs());
            ensure(whole.iter().zip(merged).all(near), || "the oracle's parts are not its whole".into())?;
        }
        expected.extend(merged.out.into_iter().map(|y| y.rounded(DType::F32)));
        logs.extend(merged.log_sum_exp);
    }
    judge("out", &dims, &out.read(stream)?, &expected)?;
    judge("log_sum_exp", &dims[..2], &lse.read(stream)?, &logs)
}

/// One sequence, as the oracle is told of it.
struct Told<'a> {
    spec: &'a AttentionSpec,
    tokens: &'a Tokens,
    q_len: usize,
    sinks: &'a [f32],
}

impl Told<'_> {
    fn attend(&self, positions: std::ops::Range<usize>, mask: Mask, sinks: Sinks) -> Partial {
        let &Told { spec, tokens, q_len, .. } = self;
        let kv = &spec.kv;
        let kept = |values: &[f32], width: usize| -> Vec<f64> {
            let values = &values[positions.start * width..positions.end * width];
            values.iter().map(|&value| stored(kv.format.element(), value)).collect()
        };
        let wide = |values: &[f32]| -> Vec<f64> { values.iter().map(|&value| f64::from(value)).collect() };
        let sinks = (sinks == Sinks::PerHead).then(|| wide(self.sinks));
        let (out, log_sum_exp) = attend(&Sequence {
            q: &wide(&tokens.q),
            k: &kept(&tokens.k, kv.kv_heads * kv.head_dim),
            v: &kept(&tokens.v, kv.kv_heads * kv.value_head_dim),
            q_len,
            kv_len: positions.len(),
            first: positions.len() as i64 - q_len as i64,
            query_heads: spec.query_heads,
            kv_heads: kv.kv_heads,
            head_dim: kv.head_dim,
            value_head_dim: kv.value_head_dim,
            scale: f64::from(spec.scale),
            soft_cap: spec.soft_cap.map(f64::from),
            mask,
            tree_parents: &[],
            alibi_slopes: None,
            sinks: sinks.as_deref(),
            int8: None,
        });
        Partial { out, log_sum_exp }
    }
}
