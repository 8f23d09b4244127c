//! Attention in several calls, each going on from the state of the one before it: every state, and the end, which on
//! backends that claim batch invariance has the bits of one call.

use super::{
    COMPUTES, Fill, Filled, Kept, Tokens,
    cases::{FLOATS, FORMATS, MASKS, kv},
    expectation, fill, told,
};
use crate::{
    cache::contents,
    case::{Fault, Verdict},
    judge::{judge, same_bits, unsupported},
    ledger::denied,
    oracle::{
        attention::{State, state},
        cache::Blocks,
    },
    poison::{Guarded, LAYOUTS, Layout},
    random::Rng,
};
use halite_kernels::{
    Backend, DType, Stream,
    attention::{
        AttentionArgs, AttentionCapacity, AttentionOut, AttentionSpec, AttentionState, AttentionStep, Mask,
        Sinks, alibi_slopes,
    },
    cache::{KvCacheInfo, KvFormat, KvSpec},
};
use std::ops::Range;

/// Which call reads which positions.
#[derive(Clone, Debug)]
pub(crate) enum Parting {
    /// Every sequence begins with as many of the same positions: a first call reads them once for all rows, a second the
    /// rest of each sequence.
    Prefix(usize),
    /// Calls of the same rows over positions that end here, and a last one to the end; ascending.
    Ends(Vec<usize>),
}

/// One layer of one step.
#[derive(Clone, Debug)]
pub(crate) struct StateCase {
    /// What is computed.
    spec: AttentionSpec,
    /// `(q_len, kv_len)` of each sequence.
    sequences: Vec<(usize, usize)>,
    /// The sequences' parents one after the other, with a tree.
    tree_parents: Vec<i32>,
    /// Which call reads which positions.
    parting: Parting,
    /// What queries and keys hold.
    fill: Fill,
    /// How queries, results and states lie in memory.
    layout: Layout,
    /// Of data and block order.
    seed: u64,
}

fn case(spec: AttentionSpec, sequences: &[(usize, usize)], parting: Parting) -> StateCase {
    let seed = sequences.len() as u64 + spec.kv_split as u64;
    let layout = LAYOUTS[spec.query_heads % LAYOUTS.len()];
    let case = StateCase {
        spec,
        sequences: sequences.to_vec(),
        tree_parents: Vec::new(),
        parting,
        fill: Fill::Away,
        layout,
        seed,
    };
    with_trees(case)
}

/// The case with parents, where its mask is a tree.
fn with_trees(mut case: StateCase) -> StateCase {
    case.tree_parents.clear();
    let mut rng = Rng::new(case.seed);
    for &(q_len, _) in case.sequences.iter().filter(|_| case.spec.mask == Mask::Tree) {
        case.tree_parents.extend((0..q_len).map(|row| rng.below(row + 1) as i32 - 1));
    }
    case
}

/// Every mask, type and arithmetic; prefixes of one part and several; rows that see nothing of a call's range.
pub(crate) fn cases() -> Vec<StateCase> {
    let mut cases = Vec::new();
    let spec = |group: usize, kv: KvSpec, split: usize| {
        AttentionSpec::causal(group * kv.kv_heads, kv).with_kv_split(split)
    };
    let rest = [(1, 1), (5, 5), (1, 70), (20, 130), (0, 9)];
    for (number, format) in FORMATS.into_iter().enumerate() {
        for (split, prefix, block_size) in [(64, 64, 16), (16, 48, 7), (64, 192, 100), (256, 256, 64)] {
            let kv = kv(2, 24 + number, block_size, DType::F32).with_value_head_dim(20).with_format(format);
            let spec = spec(3, kv, split).with_dtype(FLOATS[number % 3]);
            let sequences = rest.map(|(q_len, len)| (q_len, prefix + len));
            let sinks = spec.clone().with_sinks(Sinks::PerHead).with_soft_cap(0.5);
            cases.push(case(sinks, &sequences, Parting::Prefix(prefix)));
            cases.push(case(spec.clone().with_mask(Mask::Tree), &sequences, Parting::Prefix(prefix)));
            cases.push(case(spec.with_mask(Mask::Bidirectional), &sequences, Parting::Prefix(prefix)));
        }
        // All of a sequence is the prefix: nothing is left to read.
        let kv = kv(1, 32, 16, DType::F32).with_format(format);
        cases.push(case(spec(2, kv, 32), &[(0, 64), (1, 65), (1, 70)], Parting::Prefix(64)));
    }
    // Rows before, within and after each call's range; sequences that end before it.
    let sequences = [(131, 131), (1, 200), (9, 70), (3, 5), (1, 0), (2, 64)];
    for (number, mask) in MASKS.into_iter().enumerate() {
        // The rows of a tree are positions of their own.
        let own = |&(q_len, kv_len): &(usize, usize)| mask != Mask::Tree || q_len <= kv_len;
        let sequences: Vec<(usize, usize)> = sequences.into_iter().filter(own).collect();
        for ends in [&[64][..], &[32, 96, 160], &[0, 128, 128]] {
            let kv = kv(2, 16, [16, 7][number % 2], DType::F32).with_format(FORMATS[number % 4]);
            let mut spec = spec(2, kv, 32).with_mask(mask).with_sinks(Sinks::PerHead);
            if mask != Mask::Tree {
                spec = spec.with_alibi_slopes(alibi_slopes(4));
            }
            cases.push(case(spec, &sequences, Parting::Ends(ends.to_vec())));
        }
    }
    // Arithmetic in INT8; latent caches.
    let int8 = kv(2, 20, 16, DType::F32).with_format(KvFormat::Int8PerTokenHead);
    let latent = KvSpec::latent(2, 24, 8);
    for (spec, prefix) in COMPUTES
        .map(|compute| (spec(2, int8.clone(), 64).with_compute(compute), 128))
        .into_iter()
        .chain([(spec(5, latent, 32), 64)])
    {
        let sequences = rest.map(|(q_len, len)| (q_len, prefix + len));
        cases.push(case(spec.clone(), &sequences, Parting::Prefix(prefix)));
        cases.push(case(spec, &sequences, Parting::Ends(vec![64, 128])));
    }
    // Scores far from zero, where a part takes all or nothing.
    for fill in [Fill::Steep, Fill::FarBelow, Fill::Uneven] {
        let spec = spec(2, kv(1, 32, 16, DType::F32), 32);
        cases.push(StateCase { fill, ..case(spec, &[(1, 70), (40, 129)], Parting::Ends(vec![32, 96])) });
    }
    cases
}

pub(crate) fn random(seed: u64) -> StateCase {
    let mut rng = Rng::new(seed ^ 0x57A7E);
    let split = 16 * (1 + rng.below(8));
    let kv_heads = 1 + rng.below(2);
    let kv = kv(kv_heads, 1 + rng.below(70), 1 + rng.below(40), DType::F32)
        .with_value_head_dim(1 + rng.below(70))
        .with_format(rng.pick(&FORMATS));
    let mut spec = AttentionSpec::causal(kv_heads * (1 + rng.below(5)), kv)
        .with_kv_split(split)
        .with_dtype(rng.pick(&FLOATS));
    if spec.kv.format == KvFormat::Int8PerTokenHead {
        spec = spec.with_compute(rng.pick(&COMPUTES));
    }
    if rng.coin() {
        spec = spec.with_sinks(Sinks::PerHead);
    }
    if rng.coin() {
        spec = spec.with_soft_cap(0.1 + 4.0 * rng.unit());
    }
    let parting = if rng.coin() {
        spec = spec.with_mask(rng.pick(&[Mask::Causal, Mask::Causal, Mask::Bidirectional, Mask::Tree]));
        Parting::Prefix(split * (1 + rng.below(3)))
    } else {
        spec = spec.with_mask(match rng.below(3) {
            0 => Mask::Sliding { window: 1 + rng.below(170) },
            1 => Mask::Chunked { chunk: 1 + rng.below(170) },
            _ => rng.pick(&MASKS),
        });
        if spec.mask != Mask::Tree && rng.coin() {
            let slopes = alibi_slopes(spec.query_heads);
            spec = spec.with_alibi_slopes(slopes);
        }
        let mut ends: Vec<usize> = (0..1 + rng.below(3)).map(|_| split * rng.below(5)).collect();
        ends.sort_unstable();
        Parting::Ends(ends)
    };
    let before = if let Parting::Prefix(prefix) = parting { prefix } else { 0 };
    let sequences = (0..1 + rng.below(3)).map(|_| {
        let len = rng.below(150);
        (rng.below(len.min(30) + 1), before + len)
    });
    let sequences = sequences.collect();
    let layout = rng.pick(&LAYOUTS);
    let tree_parents = Vec::new();
    with_trees(StateCase { spec, sequences, tree_parents, parting, fill: Fill::Away, layout, seed })
}

/// One call's step.
struct Step {
    spec: AttentionSpec,
    cu_seqlens: Vec<u32>,
    kv_lens: Vec<u32>,
    kv_ranges: Vec<Range<u32>>,
    table: Vec<i32>,
    row: usize,
    tree_parents: Vec<i32>,
    /// What every sequence's rows have read after it.
    read: usize,
}

/// A case's data, on the device.
struct Laid<B: Backend> {
    tokens: Vec<Tokens>,
    filled: Filled<B>,
    q: Guarded<B>,
    sinks: Vec<f32>,
}

/// Maxima, sums and values.
pub(crate) type States<B> = [Guarded<B>; 3];

pub(crate) fn view<B: Backend>([max, sum, values]: &States<B>) -> AttentionState<'_, B> {
    AttentionState { max: &max.view, sum: &sum.view, values: &values.view }
}

/// What a call gave.
enum Given<B: Backend> {
    State(States<B>),
    /// Result and log-sum-exp.
    Result(Guarded<B>, Guarded<B>),
}

impl<B: Backend> Laid<B> {
    fn new(device: &B, stream: &mut B::Stream, case: &StateCase) -> Result<Self, Fault> {
        let StateCase { spec, sequences, .. } = case;
        let (kv, mut rng) = (&spec.kv, Rng::new(case.seed));
        let mut tokens: Vec<Tokens> = sequences
            .iter()
            .map(|&(q_len, kv_len)| Tokens::new(&mut rng, spec, case.fill, q_len, kv_len))
            .collect();
        if let Parting::Prefix(prefix) = case.parting {
            let (keys, values) =
                (prefix * kv.kv_heads * kv.head_dim, prefix * kv.kv_heads * kv.value_head_dim);
            let (k, v) = (tokens[0].k[..keys].to_vec(), tokens[0].v[..values].to_vec());
            for tokens in &mut tokens {
                tokens.k[..keys].copy_from_slice(&k);
                tokens.v[..values].copy_from_slice(&v);
            }
        }
        let filled = fill(device, stream, spec, 1, &tokens, case.seed)?;
        let total = sequences.iter().map(|sequence| sequence.0).sum();
        let q: Vec<f32> = tokens.iter().flat_map(|tokens| tokens.q.iter().copied()).collect();
        let dims = [total, spec.query_heads, kv.head_dim];
        let q = Guarded::<B>::input(stream, spec.dtype, &q, &dims, case.layout)?.0;
        let sinks = rng.aways(spec.query_heads);
        Ok(Laid { tokens, filled, q, sinks })
    }

    /// The step that reads everything at once.
    fn whole(&self, case: &StateCase) -> Step {
        let mut cu_seqlens = vec![0];
        for (q_len, _) in &case.sequences {
            cu_seqlens.push(cu_seqlens[cu_seqlens.len() - 1] + *q_len as u32);
        }
        Step {
            spec: case.spec.clone(),
            cu_seqlens,
            kv_lens: case.sequences.iter().map(|sequence| sequence.1 as u32).collect(),
            kv_ranges: Vec::new(),
            table: self.filled.table.clone(),
            row: self.filled.row,
            tree_parents: case.tree_parents.clone(),
            read: usize::MAX,
        }
    }

    /// The case's calls, from left to right.
    fn steps(&self, case: &StateCase) -> Vec<Step> {
        let (whole, block_size) = (|| self.whole(case), case.spec.kv.block_size);
        match &case.parting {
            &Parting::Prefix(prefix) => {
                let first = Step {
                    spec: case.spec.clone().with_mask(Mask::Bidirectional).with_sinks(Sinks::None),
                    cu_seqlens: vec![0, whole().cu_seqlens[case.sequences.len()]],
                    kv_lens: vec![prefix as u32],
                    table: self.filled.table[..self.filled.row].to_vec(),
                    tree_parents: Vec::new(),
                    read: prefix,
                    ..whole()
                };
                let kv_ranges = case.sequences.iter().map(|&(_, kv_len)| prefix as u32..kv_len as u32);
                let mut rest = Step { kv_ranges: kv_ranges.collect(), ..whole() };
                // Blocks of which nothing is read may be named anyhow.
                for row in rest.table.chunks_mut(rest.row) {
                    row[..prefix / block_size].fill(i32::MIN);
                }
                vec![first, rest]
            }
            Parting::Ends(ends) => {
                let starts = [0].into_iter().chain(ends.iter().copied());
                let ends = ends.iter().copied().chain([usize::MAX]);
                let steps = starts.zip(ends).map(|(start, end)| {
                    let range = |&(_, kv_len): &(usize, usize)| match kv_len {
                        // Nothing is left: the end of the part is beyond the sequence.
                        len if start > len => 0..0,
                        len => start as u32..end.min(len) as u32,
                    };
                    let kv_ranges = case.sequences.iter().map(range).collect();
                    Step { kv_ranges, read: end, ..whole() }
                });
                steps.collect()
            }
        }
    }

    fn call(
        &self,
        device: &B,
        stream: &mut B::Stream,
        (case, step): (&StateCase, &Step),
        state_in: Option<&States<B>>,
        last: bool,
    ) -> Result<Given<B>, Fault> {
        let (spec, cache) = (&step.spec, &self.filled.cache);
        let total = self.q.view.dims()[0];
        let capacity = AttentionCapacity {
            max_tokens: total,
            max_sequences: step.kv_lens.len(),
            max_blocks_per_sequence: step.row,
            cache_blocks: cache.blocks(),
        };
        let mut plan = device.attention_plan(spec, &capacity)?;
        stream.reserve(device.attention_workspace(&plan))?;
        let checked = AttentionStep {
            cu_seqlens: &step.cu_seqlens,
            kv_lens: &step.kv_lens,
            kv_ranges: &step.kv_ranges,
            block_table: &step.table,
            tree_parents: &step.tree_parents,
        };
        let checked = checked.check(&plan)?;
        device.attention_update(stream, &mut plan, &checked)?;
        let dims = [total, spec.query_heads, spec.kv.value_head_dim];
        let rows = Layout::Rows { before: 1, after: 2 };
        let mut output = |dtype, dims: &[usize], layout| Guarded::<B>::output(stream, dtype, dims, layout);
        let given = if last {
            Given::Result(output(spec.dtype, &dims, case.layout)?, output(DType::F32, &dims[..2], rows)?)
        } else {
            let state =
                [output(DType::F32, &dims[..2], rows)?, output(DType::F32, &dims[..2], Layout::Dense)?];
            let [max, sum] = state;
            Given::State([max, sum, output(DType::F32, &dims, case.layout)?])
        };
        let (out, log_sum_exp) = match &given {
            Given::Result(out, log) => (AttentionOut::Normalised(&out.view), Some(&log.view)),
            Given::State(state) => (AttentionOut::State(view(state)), None),
        };
        let heads = [spec.query_heads];
        let sinks = Guarded::<B>::input(stream, DType::F32, &self.sinks, &heads, Layout::Dense)?.0;
        let args = AttentionArgs {
            plan: &plan,
            cache,
            layer: 1,
            q: &self.q.view,
            state_in: state_in.map(view),
            out,
            sinks: (last && spec.sinks == Sinks::PerHead).then_some(&sinks.view),
            log_sum_exp,
        };
        device.attention(stream, args.check()?)?;
        Ok(given)
    }
}

/// What a backend denies must be refused.
fn denies<B: Backend>(device: &B, case: &StateCase) -> Option<Verdict> {
    let spec = &case.spec;
    if denied(device.cache_supports(&spec.kv)) {
        return Some(unsupported("cache", device.kv_cache(&spec.kv, 1)));
    }
    let capacity =
        AttentionCapacity { max_tokens: 1, max_sequences: 1, max_blocks_per_sequence: 1, cache_blocks: 1 };
    let of_prefix = spec.clone().with_mask(Mask::Bidirectional).with_sinks(Sinks::None);
    for spec in [spec, &of_prefix] {
        if denied(device.attention_supports(spec)) {
            return Some(unsupported("attention", device.attention_plan(spec, &capacity)));
        }
    }
    None
}

pub(super) fn body<B: Backend>(device: &B, case: &StateCase) -> Verdict {
    if let Some(verdict) = denies(device, case) {
        return verdict;
    }
    let StateCase { spec, sequences, .. } = case;
    let (stream, kv) = (&mut device.stream()?, &spec.kv);
    let laid = Laid::new(device, stream, case)?;
    let blocks = Blocks::of(kv, contents(device, stream, &laid.filled.cache)?);
    let kept: Vec<Kept> = sequences
        .iter()
        .zip(laid.filled.table.chunks(laid.filled.row))
        .map(|(&(_, kv_len), table)| Kept::read(kv, &blocks, 1, table, kv_len))
        .collect();
    let mut parents = Vec::new();
    let mut first = 0;
    for (q_len, _) in sequences {
        parents.push(case.tree_parents.get(first..first + q_len).unwrap_or_default());
        first += q_len;
    }
    let dims = [first, spec.query_heads, kv.value_head_dim];
    let (steps, mut states) = (laid.steps(case), None);
    for (number, step) in steps.iter().enumerate() {
        let last = number + 1 == steps.len();
        match laid.call(device, stream, (case, step), states.as_ref(), last)? {
            Given::State(given) => {
                let mut expected = State::default();
                for (place, &lens) in sequences.iter().enumerate() {
                    let (tokens, kept) = (&laid.tokens[place], &kept[place]);
                    let of = told(spec, tokens, kept, lens, parents[place], |sequence| {
                        state(sequence, 0..step.read)
                    });
                    expected.max.extend(of.max);
                    expected.sum.extend(of.sum);
                    expected.values.extend(of.values);
                }
                judge("state's max", &dims[..2], &given[0].read(stream)?, &expected.max)?;
                judge("state's sum", &dims[..2], &given[1].read(stream)?, &expected.sum)?;
                judge("state's values", &dims, &given[2].read(stream)?, &expected.values)?;
                states = Some(given);
            }
            Given::Result(out, log_sum_exp) => {
                let (mut expected, mut logs) = (Vec::new(), Vec::new());
                let sinks = (spec.sinks == Sinks::PerHead).then_some(&laid.sinks[..]);
                for (place, &lens) in sequences.iter().enumerate() {
                    let (tokens, kept) = (&laid.tokens[place], &kept[place]);
                    let (out, lse) = expectation(spec, tokens, kept, lens, parents[place], sinks);
                    expected.extend(out);
                    logs.extend(lse);
                }
                judge("out", &dims, &out.read(stream)?, &expected)?;
                judge("log_sum_exp", &dims[..2], &log_sum_exp.read(stream)?, &logs)?;
            }
        }
    }
    Ok(())
}

/// The bits of the case's calls, which must be those of one call: `None` where the backend denies the case.
pub(crate) fn bits_apart<B: Backend>(device: &B, case: &StateCase) -> Result<Option<Vec<u8>>, Fault> {
    if denies(device, case).is_some() {
        return Ok(None);
    }
    let stream = &mut device.stream()?;
    let laid = Laid::new(device, stream, case)?;
    let bytes = |stream: &mut B::Stream, given| match given {
        Given::Result::<B>(out, log) => Ok([out.read_bytes(stream)?, log.read_bytes(stream)?].concat()),
        Given::State(_) => Err(Fault::new("the last call normalises")),
    };
    let whole = laid.call(device, stream, (case, &laid.whole(case)), None, true)?;
    let whole = bytes(stream, whole)?;
    let (steps, mut states) = (laid.steps(case), None);
    for (number, step) in steps.iter().enumerate() {
        let last = number + 1 == steps.len();
        match laid.call(device, stream, (case, step), states.as_ref(), last)? {
            Given::State(given) => states = Some(given),
            given => {
                same_bits(&format!("{case:?}, in {} calls", steps.len()), &bytes(stream, given)?, &whole)?
            }
        }
    }
    Ok(Some(whole))
}
