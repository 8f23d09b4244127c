//! Pooling, judged.

use crate::{
    case::Verdict,
    judge::{judge, refused, unsupported},
    ledger::denied,
    oracle,
    poison::{Guarded, LAYOUTS, Layout},
    random::Rng,
    tolerance::Bound,
};
use halite_kernels::{
    Backend, DType,
    embedding::{PoolArgs, Pooling, PoolingSpec, PoolingStep},
};

const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::Bf16];
pub(crate) const POOLINGS: [Pooling; 3] = [Pooling::First, Pooling::Last, Pooling::Mean];

/// One call.
#[derive(Clone, Debug)]
pub(super) struct Case {
    spec: PoolingSpec,
    /// Tokens of each sequence.
    lengths: Vec<usize>,
    hidden: usize,
    layout: Layout,
    /// Whether the first element is a NaN and the last an infinity, and the others sum up beyond F16.
    extremes: bool,
    seed: u64,
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, hidden) in [0, 1, 15, 16, 17, 33, 384].into_iter().enumerate() {
        for pooling in POOLINGS {
            for lengths in [vec![], vec![0], vec![1], vec![2], vec![0, 3, 0, 0, 1, 130, 7, 0]] {
                let spec = PoolingSpec::new(pooling);
                let spec = spec.with_input(FLOATS[number % 3]).with_output(FLOATS[number / 2 % 3]);
                for extremes in [false, true] {
                    let (spec, lengths, layout) = (spec.clone(), lengths.clone(), LAYOUTS[number % 3]);
                    cases.push(Case { spec, lengths, hidden, layout, extremes, seed: number as u64 });
                }
            }
        }
    }
    cases
}

pub(super) fn random(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    let spec = PoolingSpec::new(rng.pick(&POOLINGS));
    Case {
        spec: spec.with_input(rng.pick(&FLOATS)).with_output(rng.pick(&FLOATS)),
        lengths: (0..rng.below(9)).map(|_| rng.below(20)).collect(),
        hidden: rng.below(100),
        layout: rng.pick(&LAYOUTS),
        extremes: rng.coin(),
        seed,
    }
}

/// `[sequences + 1]`
pub(crate) fn cu_seqlens(lengths: &[usize]) -> Vec<u32> {
    let mut ends = vec![0];
    let mut end = 0;
    for length in lengths {
        end += *length as u32;
        ends.push(end);
    }
    ends
}

pub(super) fn body<B: Backend>(device: &B, case: &Case) -> Verdict {
    let Case { spec, lengths, hidden, layout, extremes, seed } = case;
    let stream = &mut device.stream()?;
    let (starts, tokens): (_, usize) = (cu_seqlens(lengths), lengths.iter().sum());
    let planned = device.pooling_plan(spec, lengths.len() + 1, tokens + 1);
    if denied(device.pooling_supports(spec)) {
        return unsupported("pool", planned);
    }
    let mut plan = planned?;
    // A longer step before it: what it leaves must not be used.
    let earlier = vec![0; lengths.len() + 2];
    let step = PoolingStep { cu_seqlens: &earlier }.check(&plan)?;
    device.pooling_update(stream, &mut plan, &step)?;
    let step = PoolingStep { cu_seqlens: &starts }.check(&plan)?;
    device.pooling_update(stream, &mut plan, &step)?;
    let mut values = Rng::new(*seed).aways(tokens * hidden);
    if *extremes {
        values.iter_mut().for_each(|x| *x *= 5e4);
        if let [first, .., last] = &mut values[..] {
            (*first, *last) = (f32::NAN, f32::INFINITY);
        }
    }
    let (x, x_values) = Guarded::<B>::input(stream, spec.input, &values, &[tokens, *hidden], *layout)?;
    let dims = [lengths.len(), *hidden];
    let out = Guarded::<B>::output(stream, spec.output, &dims, *layout)?;
    device.pool(stream, PoolArgs { plan: &plan, x: &x.view, out: &out.view }.check()?)?;
    let mut expected: Vec<Bound> = Vec::new();
    for window in starts.windows(2) {
        let tokens = window[0] as usize..window[1] as usize;
        expected.extend(oracle::embedding::pool(spec.pooling, &x_values, *hidden, tokens));
    }
    let widens = spec.input == spec.output || spec.output == DType::F32;
    // A row taken as it is keeps its bits.
    let rounded = |y: Bound| if widens && y.error == 0.0 { y } else { y.rounded(spec.output) };
    judge("out", &dims, &out.read(stream)?, &expected.into_iter().map(rounded).collect::<Vec<_>>())
}

pub(super) fn errors<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let spec = PoolingSpec::new(Pooling::Mean);
    if denied(device.pooling_supports(&spec)) {
        return unsupported("pool", device.pooling_plan(&spec, 2, 5));
    }
    let mut plan = device.pooling_plan(&spec, 2, 5)?;
    for (argument, starts) in [
        ("cu_seqlens", &[][..]),
        ("cu_seqlens", &[1]),
        ("cu_seqlens", &[1, 2]),
        ("cu_seqlens", &[0, 3, 2]),
        ("sequences", &[0, 1, 2, 3]),
        ("tokens", &[0, 6]),
        ("tokens", &[0, 2, u32::MAX]),
    ] {
        refused("pool", argument, PoolingStep { cu_seqlens: starts }.check(&plan))?;
    }
    let step = PoolingStep { cu_seqlens: &[0, 3, 5] }.check(&plan)?;
    for (sequences, tokens) in [(3, 5), (2, 6)] {
        let mut other = device.pooling_plan(&spec, sequences, tokens)?;
        refused("pool", "step", device.pooling_update(stream, &mut other, &step))?;
    }
    device.pooling_update(stream, &mut plan, &step)?;
    let mut tensor = |dtype, dims: &[usize]| Guarded::<B>::output(stream, dtype, dims, Layout::Dense);
    let (x, out) = (tensor(DType::F32, &[5, 4])?, tensor(DType::F32, &[2, 4])?);
    let (half, flat, wide) =
        (tensor(DType::F16, &[5, 4])?, tensor(DType::F32, &[20])?, tensor(DType::F32, &[2, 5])?);
    for (argument, x, out) in [
        ("x", &half.view, &out.view),
        ("x", &flat.view, &out.view),
        ("x", &x.view.narrow(0, 0..4)?, &out.view),
        ("out", &x.view, &wide.view),
        ("out", &x.view, &half.view.narrow(0, 0..2)?),
        ("out", &x.view, &x.view.narrow(0, 1..3)?),
    ] {
        refused("pool", argument, PoolArgs { plan: &plan, x, out }.check())?;
    }
    out.untouched(stream)
}
