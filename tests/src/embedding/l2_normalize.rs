//! L2 normalising, judged.

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
    embedding::{L2NormalizeArgs, L2NormalizeSpec, MIN_EPS},
};

const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::Bf16];

/// What rows hold, times magnitudes in [0.5, 1).
const SCALES: [f32; 9] = [1.0, 0.0, 1e-30, 3e-13, 2e12, 1.1e18, 1e19, 2e38, 1e-4];

/// One call.
#[derive(Clone, Debug)]
pub(super) struct Case {
    spec: L2NormalizeSpec,
    rows: usize,
    columns: usize,
    /// Factor of the data.
    scale: f32,
    /// Whether the first row has a NaN and the last an infinity; a row between them is zeros then.
    extremes: bool,
    layout: Layout,
    seed: u64,
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, columns) in [0, 1, 2, 15, 16, 17, 33, 100, 768].into_iter().enumerate() {
        for rows in [0, 1, 3] {
            for scale in SCALES {
                for eps in [MIN_EPS, 0.25] {
                    let (spec, layout) = (L2NormalizeSpec::new(eps), LAYOUTS[number % 3]);
                    let seed = number as u64;
                    cases.push(Case { spec, rows, columns, scale, extremes: false, layout, seed });
                }
            }
        }
    }
    for dtype in FLOATS {
        // Up to the largest F16, whose squares are none, and down to its subnormal numbers.
        for scale in [1.0, 0.0, 6e4, 1e-7] {
            for (layout, extremes) in LAYOUTS.into_iter().zip([true, false, true]) {
                let spec = L2NormalizeSpec::new(MIN_EPS).with_dtype(dtype);
                cases.push(Case { spec, rows: 4, columns: 37, scale, extremes, layout, seed: 3 });
            }
        }
    }
    cases
}

pub(super) fn random(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    Case {
        spec: L2NormalizeSpec::new(rng.pick(&[MIN_EPS, 1e-6, 1.0])).with_dtype(rng.pick(&FLOATS)),
        rows: rng.below(20),
        columns: rng.below(200),
        scale: rng.pick(&[1.0, 0.01, 100.0]),
        extremes: rng.coin(),
        layout: rng.pick(&LAYOUTS),
        seed,
    }
}

pub(super) fn body<B: Backend>(device: &B, case: &Case) -> Verdict {
    let Case { spec, rows, columns, layout, .. } = case;
    let (stream, dims) = (&mut device.stream()?, [*rows, *columns]);
    let mut values: Vec<f32> =
        Rng::new(case.seed).aways(rows * columns).into_iter().map(|x| x * case.scale).collect();
    if case.extremes && rows * columns > 0 {
        values.iter_mut().skip(*columns).take(*columns).for_each(|x| *x = 0.0);
        values[0] = f32::NAN;
        if let Some(value) = values.last_mut() {
            *value = f32::NEG_INFINITY;
        }
    }
    let (x, x_values) = Guarded::<B>::input(stream, spec.dtype, &values, &dims, *layout)?;
    let out = Guarded::<B>::output(stream, spec.dtype, &dims, *layout)?;
    let ran = device.l2_normalize(stream, L2NormalizeArgs { spec, x: &x.view, out: &out.view }.check()?);
    if denied(device.l2_normalize_supports(spec)) {
        unsupported("l2_normalize", ran)?;
        return out.untouched(stream);
    }
    ran?;
    let row = |row: &[f64]| oracle::embedding::l2_normalize(f64::from(spec.eps), row);
    let expected = x_values.chunks_exact((*columns).max(1)).flat_map(row);
    let expected: Vec<Bound> = expected.map(|y| y.rounded(spec.dtype)).collect();
    judge("out", &dims, &out.read(stream)?, &expected)
}

pub(super) fn errors<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let spec = L2NormalizeSpec::new;
    let mut tensor = |dtype, dims: &[usize]| Guarded::<B>::output(stream, dtype, dims, Layout::Dense);
    let (x, out) = (tensor(DType::F32, &[2, 3])?, tensor(DType::F32, &[2, 3])?);
    let (half, flat) = (tensor(DType::F16, &[2, 3])?, tensor(DType::F32, &[6])?);
    for (argument, spec, x, out) in [
        ("eps", &spec(0.0), &x.view, &out.view),
        ("eps", &spec(-1.0), &x.view, &out.view),
        ("eps", &spec(1e-13), &x.view, &out.view),
        ("eps", &spec(f32::NAN), &x.view, &out.view),
        ("eps", &spec(f32::INFINITY), &x.view, &out.view),
        ("x", &spec(1e-6), &half.view, &out.view),
        ("x", &spec(1e-6), &flat.view, &out.view),
        ("out", &spec(1e-6), &x.view, &half.view),
        ("out", &spec(1e-6), &x.view, &flat.view),
        ("out", &spec(1e-6), &x.view, &out.view.narrow(0, 0..1)?),
        ("out", &spec(1e-6), &x.view, &x.view),
    ] {
        refused("l2_normalize", argument, L2NormalizeArgs { spec, x, out }.check())?;
    }
    out.untouched(stream)
}
