//! Attention, judged: sequences are written into a poisoned cache, in blocks out of order, and read from it.

mod biases;
mod cascade;
mod cases;
mod errors;
mod exact_grid;
mod int8;
mod known;
mod large;
mod latent;
mod masks;
mod merge;
mod pages;
mod states;

pub(crate) use cases::COMPUTES;
pub use large::beyond_i32;
pub(crate) use states::{States, bits_apart, cases as parted, random as parted_at_random, view};

use crate::{
    cache::contents,
    case::{Fault, Group, Verdict, ensure},
    judge::{judge, same_bits, unsupported},
    ledger::denied,
    oracle::{
        self,
        attention::{Int8, Sequence},
        cache::{Blocks, Kind},
    },
    poison::{Guarded, Layout, Region, stored},
    random::Rng,
    tolerance::Bound,
};
use halite_kernels::{
    Backend, DType, Stream, Tensor,
    attention::{
        AttentionArgs, AttentionCapacity, AttentionCompute, AttentionOut, AttentionPlan, AttentionSpec,
        AttentionStep, Mask, Sinks,
    },
    cache::{CacheWriteArgs, KvCacheInfo, KvSpec, KvValues, LatentWriteArgs},
};

/// What queries and keys hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum Fill {
    /// No element small enough to hide.
    Away,
    /// Every score lies below -5e4: a finite sentinel for "masked" would win.
    FarBelow,
    /// Scores in the thousands, far apart: one key takes all.
    Steep,
    /// Keys and values that no row of the step sees are NaN; with a tree, those of each sequence's last row.
    UnseenNan,
    /// Every element of the same magnitude: in INT8 each product is as large as there is.
    Constant,
    /// Keys and values of each position and head of a size of their own, some rows zeros: a scale that belongs to
    /// another shows.
    Uneven,
}

/// How queries and output lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum Views {
    /// Tensors of their own.
    Apart(Layout),
    /// Queries are part of a fused `[tokens, q + k + v]` buffer.
    Fused,
}

/// One layer of one step.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub(crate) struct Case {
    /// What is computed.
    pub spec: AttentionSpec,
    /// `(q_len, kv_len)` of each sequence.
    pub sequences: Vec<(usize, usize)>,
    /// The sequences' parents one after the other, with a tree.
    pub tree_parents: Vec<i32>,
    /// With sinks, about how large they are.
    pub sinks: f32,
    /// Which layer of the cache.
    pub layer: usize,
    /// What queries and keys hold.
    pub fill: Fill,
    /// How queries and output lie in memory.
    pub views: Views,
    /// Whether the log-sum-exp is asked for.
    pub log_sum_exp: bool,
    /// Of data and block order.
    pub seed: u64,
}

/// All groups of this family.
pub(crate) fn groups<B: Backend>() -> Vec<Group<B>> {
    vec![
        Group::listed("attention", "heads", cases::heads(), body),
        Group::listed("attention", "blocks", [cases::blocks(), pages::cases()].concat(), body),
        Group::listed("attention", "lengths", cases::lengths(), body),
        Group::listed("attention", "mixed", cases::mixed(), body),
        Group::listed("attention", "extremes", cases::extremes(), body),
        Group::listed("attention", "bidirectional", masks::bidirectional(), body),
        Group::listed("attention", "windows", masks::windows(), body),
        Group::listed("attention", "chunked", masks::chunked(), body),
        Group::listed("attention", "trees", masks::trees(), body),
        Group::listed("attention", "soft_caps", biases::soft_caps(), body),
        Group::listed("attention", "alibi", biases::alibi(), body),
        Group::listed("attention", "sinks", biases::sinks(), body),
        Group::listed("attention", "merge", merge::cases(), merge::body),
        Group::listed("attention", "cascade", cascade::cases(), cascade::body),
        Group::listed("attention", "states", states::cases(), states::body),
        Group::seeded("attention", "states_random", 30, states::random, states::body),
        Group::listed("attention", "int8", int8::stored(), body),
        Group::listed("attention", "int8_compute", int8::computed(), body),
        Group::listed("attention", "latent", latent::cases(), body),
        Group::bodies("attention", "known", known::bodies()),
        Group::listed("attention", "supports", cases::supports(), body),
        Group::seeded("attention", "exact_grid", 500, exact_grid::random, exact_grid::body),
        Group::seeded("attention", "random", 60, cases::random, body),
        Group::bodies("attention", "errors", errors::bodies().into_iter().chain(merge::errors()).collect()),
    ]
}

/// A sequence's data on the host: keys and values as the cache stores them.
#[derive(Clone, Debug)]
pub(crate) struct Tokens {
    pub(crate) q: Vec<f32>,
    pub(crate) k: Vec<f32>,
    pub(crate) v: Vec<f32>,
}

impl Tokens {
    pub(crate) fn new(rng: &mut Rng, spec: &AttentionSpec, fill: Fill, q_len: usize, kv_len: usize) -> Self {
        let kv = &spec.kv;
        let mut q = rng.aways(q_len * spec.query_heads * kv.head_dim);
        let mut k = rng.aways(kv_len * kv.kv_heads * kv.head_dim);
        let mut v = rng.aways(kv_len * kv.kv_heads * kv.value_head_dim);
        match fill {
            Fill::Away => {}
            // Products of at least 1/4 of one sign.
            Fill::FarBelow => {
                let factor = (2.5e5 / (kv.head_dim as f32 * spec.scale)).sqrt();
                q.iter_mut().for_each(|x| *x = x.abs() * factor);
                k.iter_mut().for_each(|x| *x = -x.abs() * factor);
            }
            Fill::Steep => q.iter_mut().for_each(|x| *x *= 1000.0),
            Fill::Constant => {
                q.iter_mut().chain(&mut v).for_each(|x| *x = 1.0);
                // Keys of one sign a row: every score is the largest or the smallest.
                k.chunks_exact_mut(kv.head_dim).for_each(|row| row.fill(row[0].signum()));
            }
            Fill::Uneven => {
                let mut uneven = |rows: &mut [f32], dim: usize| {
                    for row in rows.chunks_exact_mut(dim) {
                        let size = rng.pick(&[0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0]);
                        row.iter_mut().for_each(|x| *x *= size);
                    }
                };
                uneven(&mut k, kv.head_dim);
                uneven(&mut v, kv.value_head_dim);
            }
            Fill::UnseenNan => {
                let nan = match spec.mask {
                    // The first row's own position, less the others of its window.
                    Mask::Sliding { window } => 0..(kv_len + 1).saturating_sub(q_len).saturating_sub(window),
                    Mask::Chunked { chunk } => 0..kv_len.saturating_sub(q_len) / chunk * chunk,
                    Mask::Tree => kv_len.saturating_sub(1)..kv_len,
                    _ => 0..0,
                };
                let (key, value) = (kv.kv_heads * kv.head_dim, kv.kv_heads * kv.value_head_dim);
                k[nan.start * key..nan.end * key].fill(f32::NAN);
                v[nan.start * value..nan.end * value].fill(f32::NAN);
            }
        }
        Tokens { q, k, v }
    }
}

/// A filled cache with the block table that leads to each sequence.
pub(crate) struct Filled<B: Backend> {
    pub(crate) cache: B::KvCache,
    pub(crate) table: Vec<i32>,
    pub(crate) row: usize,
}

/// Writes each sequence's keys and values into blocks in random order; entries beyond a sequence are garbage.
pub(crate) fn fill<B: Backend>(
    device: &B,
    stream: &mut B::Stream,
    spec: &AttentionSpec,
    layer: usize,
    tokens: &[Tokens],
    seed: u64,
) -> Result<Filled<B>, Fault> {
    let kv = &spec.kv;
    let kd = kv.kv_heads * kv.head_dim;
    let lens: Vec<usize> = tokens.iter().map(|tokens| tokens.k.len() / kd).collect();
    let needed: Vec<usize> = lens.iter().map(|len| len.div_ceil(kv.block_size)).collect();
    let blocks = needed.iter().sum::<usize>() + 2;
    let row = needed.iter().max().copied().unwrap_or(0) + 1;
    let mut order = Rng::new(seed ^ 0xB10C).permutation(blocks).into_iter();
    let (cache, _) = crate::cache::poisoned(device, stream, kv, blocks)?;
    let (mut table, mut slots) = (Vec::new(), Vec::new());
    for (&len, &needed) in lens.iter().zip(&needed) {
        let own: Vec<usize> = order.by_ref().take(needed).collect();
        slots.extend((0..len).map(|i| (own[i / kv.block_size] * kv.block_size + i % kv.block_size) as i64));
        table.extend(own.iter().map(|&block| block as i32));
        let garbage = [-1, i32::MAX, i32::MIN, blocks as i32];
        table.extend((needed..row).map(|place| garbage[place % 4]));
    }
    let total = slots.len();
    let mut plan = device.slots_plan(&cache, total)?;
    crate::cache::place(device, stream, &mut plan, &slots)?;
    let k: Vec<f32> = tokens.iter().flat_map(|tokens| tokens.k.iter().copied()).collect();
    if kv.values == KvValues::KeyPrefix {
        let [latent, rope_key] = &crate::cache::latent::split::<B>(stream, kv, &k, Layout::Dense)?;
        let args = LatentWriteArgs { slots: &plan, cache: &cache, layer, latent, rope_key };
        device.cache_write_latent(stream, args.check()?)?;
        return Ok(Filled { cache, table, row });
    }
    let v: Vec<f32> = tokens.iter().flat_map(|tokens| tokens.v.iter().copied()).collect();
    let k = Tensor::<B>::from_slice(stream, &k, &[total, kv.kv_heads, kv.head_dim])?;
    let v = Tensor::<B>::from_slice(stream, &v, &[total, kv.kv_heads, kv.value_head_dim])?;
    let args = CacheWriteArgs { slots: &plan, cache: &cache, layer, k: &k, v: &v };
    device.cache_write(stream, args.check()?)?;
    Ok(Filled { cache, table, row })
}

/// Keys and values of a sequence as its cache stores them.
#[derive(Default)]
pub(crate) struct Kept {
    k: Vec<f64>,
    v: Vec<f64>,
    /// Elements and scales, of keys and of values, where there are scales.
    int8: [[Vec<f64>; 2]; 2],
    positions: Vec<usize>,
}

impl Kept {
    /// Reads `kv_len` positions of one layer through a row of the block table.
    pub(crate) fn read(kv: &KvSpec, blocks: &Blocks, layer: usize, table: &[i32], kv_len: usize) -> Self {
        let mut kept = Kept { positions: (0..kv_len).collect(), ..Kept::default() };
        for position in 0..kv_len {
            let slot = table[position / kv.block_size] as usize * kv.block_size + position % kv.block_size;
            let (k, v) = blocks.read(layer, slot);
            kept.k.extend(k);
            kept.v.extend(v);
            for (kind, [elements, scales]) in Kind::ALL.into_iter().zip(&mut kept.int8) {
                elements.extend(blocks.elements(kind, layer, slot));
                scales.extend(blocks.scales(kind, layer, slot));
            }
        }
        kept
    }

    /// What attention in INT8 reads, where the spec says so.
    fn int8(&self, spec: &AttentionSpec) -> Option<Int8<'_>> {
        let AttentionCompute::Int8 { values } = spec.compute else { return None };
        let [[k, k_scales], [v, v_scales]] = &self.int8;
        Some(Int8 { k, k_scales, v, v_scales, positions: &self.positions, kv_split: spec.kv_split, values })
    }
}

fn body<B: Backend>(device: &B, case: &Case) -> Verdict {
    let Case { spec, sequences, layer, .. } = case;
    let kv = &spec.kv;
    let stream = &mut device.stream()?;
    if denied(device.cache_supports(kv)) {
        return unsupported("cache", device.kv_cache(kv, 1));
    }
    let total: usize = sequences.iter().map(|sequence| sequence.0).sum();
    if denied(device.attention_supports(spec)) {
        let capacity = AttentionCapacity {
            max_tokens: 1,
            max_sequences: 1,
            max_blocks_per_sequence: 1,
            cache_blocks: 1,
        };
        return unsupported("attention", device.attention_plan(spec, &capacity));
    }
    let mut rng = Rng::new(case.seed);
    let tokens: Vec<Tokens> = sequences
        .iter()
        .map(|&(q_len, kv_len)| Tokens::new(&mut rng, spec, case.fill, q_len, kv_len))
        .collect();
    let Filled { cache, table, row } = fill(device, stream, spec, *layer, &tokens, case.seed)?;
    let before = contents(device, stream, &cache)?;

    let capacity = AttentionCapacity {
        max_tokens: total + 3,
        max_sequences: sequences.len() + 1,
        max_blocks_per_sequence: row,
        cache_blocks: cache.blocks(),
    };
    let mut plan = device.attention_plan(spec, &capacity)?;
    stream.reserve(device.attention_workspace(&plan))?;
    // A larger step before it: what it leaves in the tables must not be used.
    let (rows, len) = match spec.mask {
        Mask::Tree => ((total + 3).min(row * kv.block_size), (total + 3).min(row * kv.block_size)),
        _ => (total + 3, 0),
    };
    let mut ends: Vec<u32> = vec![0; sequences.len() + 1];
    ends.push(rows as u32);
    let mut lens = vec![0; sequences.len()];
    lens.push(len as u32);
    let blocks = vec![0; (sequences.len() + 1) * row];
    let parents = vec![-1; if spec.mask == Mask::Tree { rows } else { 0 }];
    let earlier = AttentionStep {
        cu_seqlens: &ends,
        kv_lens: &lens,
        kv_ranges: &[],
        block_table: &blocks,
        tree_parents: &parents,
    };
    let earlier = earlier.check(&plan)?;
    device.attention_update(stream, &mut plan, &earlier)?;
    let mut cu_seqlens = vec![0];
    let mut end = 0;
    for (q_len, _) in sequences {
        end += *q_len as u32;
        cu_seqlens.push(end);
    }
    let kv_lens: Vec<u32> = sequences.iter().map(|sequence| sequence.1 as u32).collect();
    let step = AttentionStep {
        cu_seqlens: &cu_seqlens,
        kv_lens: &kv_lens,
        kv_ranges: &[],
        block_table: &table,
        tree_parents: &case.tree_parents,
    };
    let step = step.check(&plan)?;
    device.attention_update(stream, &mut plan, &step)?;
    ensure(plan.tokens() == total, || format!("the plan counts {} tokens", plan.tokens()))?;

    let q: Vec<f32> = tokens.iter().flat_map(|tokens| tokens.q.iter().copied()).collect();
    let dims = [total, spec.query_heads, kv.head_dim];
    let out_dims = [total, spec.query_heads, kv.value_head_dim];
    let out_layout = match case.views {
        Views::Apart(layout) => layout,
        Views::Fused => Layout::Rows { before: 1, after: 2 },
    };
    let (apart, fused);
    let q_view = match case.views {
        Views::Apart(layout) => {
            apart = Guarded::<B>::input(stream, spec.dtype, &q, &dims, layout)?.0;
            &apart.view
        }
        Views::Fused => {
            let width = spec.query_heads * kv.head_dim;
            let kv_width = kv.kv_heads * (kv.head_dim + kv.value_head_dim);
            let region = Region::<B>::new(stream, spec.dtype, &[total, width + kv_width])?;
            fused = region.parent().narrow(1, 0..width)?.split_last(kv.head_dim)?;
            region.put(stream, &fused, &q)?;
            &fused
        }
    };
    let out = Guarded::<B>::output(stream, spec.dtype, &out_dims, out_layout)?;
    let lse_layout = Layout::Rows { before: 1, after: 2 };
    let lse = Guarded::<B>::output(stream, DType::F32, &[total, spec.query_heads], lse_layout)?;
    let sinks: Vec<f32> = rng.aways(spec.query_heads).iter().map(|sink| case.sinks + sink).collect();
    let sinks_in = Guarded::<B>::input(stream, DType::F32, &sinks, &[spec.query_heads], Layout::Dense)?.0;
    let with_sinks = spec.sinks == Sinks::PerHead;
    let args = AttentionArgs {
        plan: &plan,
        cache: &cache,
        layer: *layer,
        q: q_view,
        state_in: None,
        out: AttentionOut::Normalised(&out.view),
        sinks: with_sinks.then_some(&sinks_in.view),
        log_sum_exp: case.log_sum_exp.then_some(&lse.view),
    };
    device.attention(stream, args.check()?)?;

    let (mut expected, mut expected_lse) = (Vec::new(), Vec::new());
    let blocks = Blocks::of(kv, before);
    let (mut first, sinks) = (0, with_sinks.then_some(&sinks[..]));
    for (tokens, (table, &(q_len, kv_len))) in tokens.iter().zip(table.chunks(row).zip(sequences)) {
        let kept = Kept::read(kv, &blocks, *layer, table, kv_len);
        let tree_parents = case.tree_parents.get(first..first + q_len).unwrap_or_default();
        first += q_len;
        let (out, lse) = expectation(spec, tokens, &kept, (q_len, kv_len), tree_parents, sinks);
        expected.extend(out);
        expected_lse.extend(lse);
    }
    judge("out", &out_dims, &out.read(stream)?, &expected)?;
    if case.log_sum_exp {
        judge("log_sum_exp", &out_dims[..2], &lse.read(stream)?, &expected_lse)?;
    } else {
        lse.untouched(stream)?;
    }
    same_bits("the cache, which is only read", &contents(device, stream, &cache)?, &blocks.bytes)
}

/// What the oracle says of one sequence.
fn expectation(
    spec: &AttentionSpec,
    tokens: &Tokens,
    kept: &Kept,
    lens: (usize, usize),
    tree_parents: &[i32],
    sinks: Option<&[f32]>,
) -> (Vec<Bound>, Vec<Bound>) {
    let (out, lse) = told(spec, tokens, kept, lens, tree_parents, |sequence| match sinks.map(wide) {
        Some(sinks) => oracle::attention::attend(&Sequence { sinks: Some(&sinks), ..sequence.clone() }),
        None => oracle::attention::attend(sequence),
    });
    // A row that sees nothing is exactly 0.
    let round = |y: Bound| if y == Bound::exact(0.0) { y } else { y.rounded(spec.dtype) };
    (out.into_iter().map(round).collect(), lse)
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}

/// Asks the oracle about one sequence, of `(q_len, kv_len)`, without sinks.
fn told<R>(
    spec: &AttentionSpec,
    tokens: &Tokens,
    kept: &Kept,
    (q_len, kv_len): (usize, usize),
    tree_parents: &[i32],
    ask: impl FnOnce(&Sequence<'_>) -> R,
) -> R {
    let q: Vec<f64> = tokens.q.iter().map(|&value| stored(spec.dtype, value)).collect();
    ask(&Sequence {
        q: &q,
        k: &kept.k,
        v: &kept.v,
        q_len,
        kv_len,
        first: kv_len as i64 - q_len as i64,
        query_heads: spec.query_heads,
        kv_heads: spec.kv.kv_heads,
        head_dim: spec.kv.head_dim,
        value_head_dim: spec.kv.value_head_dim,
        scale: f64::from(spec.scale),
        soft_cap: spec.soft_cap.map(f64::from),
        mask: spec.mask,
        tree_parents,
        alibi_slopes: spec.alibi_slopes.as_deref(),
        sinks: None,
        int8: kept.int8(spec),
    })
}
