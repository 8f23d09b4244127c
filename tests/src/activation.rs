//! Activations, judged.

use crate::{
    case::{Group, Verdict},
    judge::{judge, refused, unsupported},
    oracle,
    poison::{Guarded, LAYOUTS, Layout},
    random::Rng,
    tolerance::Bound,
};
use halite_kernels::{
    Backend, DType, Support,
    activation::{Activation, ActivationArgs, ActivationSpec, Gating},
};

const FUNCTIONS: [Activation; 3] = [Activation::Silu, Activation::GeluErf, Activation::GeluTanh];
const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::Bf16];

/// One call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Case {
    /// What to compute.
    pub spec: ActivationSpec,
    /// Rows of input and output.
    pub rows: usize,
    /// Columns of the output.
    pub columns: usize,
    /// How both lie in memory.
    pub layout: Layout,
    /// Whether to mix in zeros, values far out and a NaN.
    pub extremes: bool,
    /// Of the data.
    pub seed: u64,
}

/// All groups of this family.
pub fn groups<B: Backend>() -> Vec<Group<B>> {
    vec![
        Group::listed("activation", "edges", edges(), body),
        Group::listed("activation", "supports", supports(), body),
        Group::seeded("activation", "random", 40, random, body),
        Group::bodies("activation", "errors", vec![("wrong shapes, types and overlaps", errors)]),
    ]
}

fn spec(function: Activation, gated: bool, dtype: DType) -> ActivationSpec {
    let spec = ActivationSpec::new(function).with_dtype(dtype);
    if gated { spec.gated() } else { spec }
}

fn edges() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, columns) in [0, 1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 64, 65, 1536].into_iter().enumerate() {
        for rows in [0, 1, 3] {
            for gated in [false, true] {
                cases.push(Case {
                    spec: spec(FUNCTIONS[number % 3], gated, DType::F32),
                    rows,
                    columns,
                    layout: LAYOUTS[number % 3],
                    extremes: columns == 33,
                    seed: number as u64,
                });
            }
        }
    }
    cases
}

fn supports() -> Vec<Case> {
    let mut cases = Vec::new();
    for function in FUNCTIONS {
        for dtype in FLOATS {
            for gated in [false, true] {
                let spec = spec(function, gated, dtype);
                cases.push(Case { spec, rows: 3, columns: 37, layout: LAYOUTS[1], extremes: true, seed: 1 });
            }
        }
    }
    cases
}

fn random(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    Case {
        spec: spec(rng.pick(&FUNCTIONS), rng.coin(), rng.pick(&FLOATS)),
        rows: rng.below(20),
        columns: rng.below(100),
        layout: rng.pick(&LAYOUTS),
        extremes: rng.coin(),
        seed,
    }
}

fn body<B: Backend>(device: &B, case: &Case) -> Verdict {
    let Case { spec, rows, columns, layout, .. } = case;
    let stream = &mut device.stream()?;
    let gated = spec.gating == Gating::GateThenUp;
    let width = if gated { 2 * columns } else { *columns };
    let mut values = Rng::new(case.seed).spreads(rows * width);
    if case.extremes {
        // Products stay within F16.
        let extremes = [0.0, -0.0, 30.0, -30.0, 100.0, -100.0, -88.5, 2e3, -2e3, 1e-30, f32::NAN];
        values.iter_mut().step_by(3).zip(extremes).for_each(|(value, extreme)| *value = extreme);
    }
    let (x, x_values) = Guarded::<B>::input(stream, spec.dtype, &values, &[*rows, width], *layout)?;
    let out = Guarded::<B>::output(stream, spec.dtype, &[*rows, *columns], *layout)?;
    let ran = device.activation(stream, ActivationArgs { spec, x: &x.view, out: &out.view }.check()?);
    if let Support::No(_) = device.activation_supports(spec) {
        unsupported("activation", ran)?;
        return out.untouched(stream);
    }
    ran?;
    let exact = if gated {
        oracle::activation::gated(spec.activation, &x_values, *columns)
    } else {
        x_values.iter().map(|&x| Bound::exact(x).activated(spec.activation)).collect()
    };
    let expected: Vec<Bound> = exact.into_iter().map(|y| y.rounded(spec.dtype)).collect();
    judge("out", &[*rows, *columns], &out.read(stream)?, &expected)
}

fn errors<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let gated = spec(Activation::Silu, true, DType::F32);
    let plain = spec(Activation::Silu, false, DType::F32);
    let out = Guarded::<B>::output(stream, DType::F32, &[2, 3], Layout::Dense)?;
    let half = Guarded::<B>::output(stream, DType::F16, &[2, 3], Layout::Dense)?;
    let flat = Guarded::<B>::output(stream, DType::F32, &[6], Layout::Dense)?;
    let x = Guarded::<B>::output(stream, DType::F32, &[2, 3], Layout::Dense)?;
    for (argument, spec, x, out) in [
        ("x", &gated, &x.view, &out.view),
        ("x", &plain, &half.view, &out.view),
        ("x", &plain, &x.view.narrow(0, 0..1)?, &out.view),
        ("x", &plain, &flat.view, &out.view),
        ("out", &plain, &x.view, &half.view),
        ("out", &plain, &x.view, &flat.view),
        ("out", &plain, &out.view, &out.view),
    ] {
        refused("activation", argument, ActivationArgs { spec, x, out }.check())?;
    }
    out.untouched(stream)
}
