//! Activations, judged: plain, gated, with the quantisation.

use crate::{
    case::{Group, Verdict},
    judge::{judge, judge_quantised, refused, unsupported},
    ledger::denied,
    oracle,
    poison::{Guarded, LAYOUTS, Layout},
    random::Rng,
    tolerance::Bound,
};
use halite_kernels::{
    Backend, DType,
    activation::{Activation, ActivationArgs, ActivationOut, ActivationSpec, Function, GateLayout, Glu},
};

/// The functions of one element.
pub(crate) const FUNCTIONS: [Activation; 6] = [
    Activation::Silu,
    Activation::GeluErf,
    Activation::GeluTanh,
    Activation::QuickGelu,
    Activation::Relu,
    Activation::ReluSquared,
];
/// Clamped gated units: gpt-oss's, and one whose limit most data exceed.
pub(crate) const CLAMPED: [Glu; 2] = [Glu::CLAMPED_SWIGLU, Glu::Clamped { alpha: -0.5, limit: 0.25 }];
const LAYOUTS_OF_GATES: [GateLayout; 2] = [GateLayout::Split, GateLayout::Interleaved];
const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::Bf16];

/// What becomes of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum Output {
    /// Floats.
    Float,
    /// INT8 per token.
    Int8,
    /// INT8 per token, of columns divided by smoothing factors.
    Smoothed,
}

/// One call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub(crate) struct Case {
    /// What to compute.
    pub spec: ActivationSpec,
    /// Whether the result is quantised, and how.
    pub output: Output,
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
pub(crate) fn groups<B: Backend>() -> Vec<Group<B>> {
    vec![
        Group::listed("activation", "edges", edges(), body),
        Group::listed("activation", "glu", glu(), body),
        Group::listed("activation", "quantised", quantised(), body),
        Group::listed("activation", "supports", supports(), body),
        Group::seeded("activation", "random", 60, random, body),
        Group::bodies("activation", "errors", vec![("wrong constants, shapes, types and overlaps", errors)]),
    ]
}

/// Every function: plain, gated and clamped, gates on either side.
pub(crate) fn specs() -> Vec<ActivationSpec> {
    let plain = FUNCTIONS.into_iter().map(ActivationSpec::new);
    let glus = FUNCTIONS.into_iter().map(Glu::Plain).chain(CLAMPED);
    let gated =
        glus.flat_map(|glu| LAYOUTS_OF_GATES.into_iter().map(move |layout| ActivationSpec::glu(glu, layout)));
    plain.chain(gated).collect()
}

fn edges() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, columns) in [0, 1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 64, 65, 1536].into_iter().enumerate() {
        let function = FUNCTIONS[number % FUNCTIONS.len()];
        for rows in [0, 1, 3] {
            for spec in
                [ActivationSpec::new(function), ActivationSpec::glu(Glu::Plain(function), GateLayout::Split)]
            {
                let (layout, extremes) = (LAYOUTS[number % 3], columns == 33);
                let seed = number as u64;
                cases.push(Case { spec, output: Output::Float, rows, columns, layout, extremes, seed });
            }
        }
    }
    cases
}

fn glu() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, columns) in [0, 1, 7, 16, 17, 32, 47, 64, 1440].into_iter().enumerate() {
        for layout in LAYOUTS_OF_GATES {
            for glu in [Glu::Plain(FUNCTIONS[number % 3]), CLAMPED[0], CLAMPED[1]] {
                let (spec, extremes) = (ActivationSpec::glu(glu, layout), columns == 47);
                let (layout, seed) = (LAYOUTS[number % 3], number as u64);
                cases.push(Case { spec, output: Output::Float, rows: 3, columns, layout, extremes, seed });
            }
        }
    }
    cases
}

fn quantised() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, columns) in [0, 1, 15, 16, 17, 33, 64, 100, 1536].into_iter().enumerate() {
        for rows in [0, 1, 5] {
            for spec in specs().into_iter().skip(number).step_by(5) {
                let (layout, extremes) = (LAYOUTS[number % 3], columns == 33);
                for output in [Output::Int8, Output::Smoothed] {
                    let spec = spec.clone();
                    cases.push(Case { spec, output, rows, columns, layout, extremes, seed: 3 });
                }
            }
        }
    }
    cases
}

fn supports() -> Vec<Case> {
    let mut cases = Vec::new();
    for spec in specs() {
        for dtype in FLOATS {
            for output in [Output::Float, Output::Int8, Output::Smoothed] {
                let (spec, layout) = (spec.clone().with_dtype(dtype), LAYOUTS[1]);
                cases.push(Case { spec, output, rows: 3, columns: 37, layout, extremes: true, seed: 1 });
            }
        }
    }
    cases
}

fn random(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    let specs = specs();
    Case {
        spec: specs[rng.below(specs.len())].clone().with_dtype(rng.pick(&FLOATS)),
        output: rng.pick(&[Output::Float, Output::Int8, Output::Smoothed]),
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
    let width = if matches!(spec.function, Function::Plain(_)) { *columns } else { 2 * columns };
    let mut values = Rng::new(case.seed).spreads(rows * width);
    if case.extremes {
        // Squares and products stay within F16.
        let extremes =
            [0.0, -0.0, 7.0, -7.0, 30.0, -30.0, 100.0, -100.0, -88.5, 50.5, -150.5, 1e-30, f32::NAN];
        values.iter_mut().step_by(3).zip(extremes).for_each(|(value, extreme)| *value = extreme);
    }
    let dims = [*rows, *columns];
    let (x, x_values) = Guarded::<B>::input(stream, spec.dtype, &values, &[*rows, width], *layout)?;
    let out = Guarded::<B>::output(stream, spec.dtype, &dims, *layout)?;
    let q = Guarded::<B>::output(stream, DType::I8, &dims, *layout)?;
    let scales = Guarded::<B>::output(stream, DType::F32, &dims[..1], Layout::Dense)?;
    let divisors = Rng::new(case.seed ^ 5).aways(*columns);
    let (factors, divisors) = Guarded::<B>::input(stream, DType::F32, &divisors, &dims[1..], Layout::Dense)?;
    let target = match case.output {
        Output::Float => ActivationOut::Float(&out.view),
        Output::Int8 => ActivationOut::Int8PerToken { q: &q.view, scales: &scales.view },
        Output::Smoothed => {
            ActivationOut::Int8Smoothed { q: &q.view, scales: &scales.view, factors: &factors.view }
        }
    };
    let ran = device.activation(stream, ActivationArgs { spec, x: &x.view, out: target }.check()?);
    if denied(device.activation_supports(spec)) {
        unsupported("activation", ran)?;
        q.untouched(stream)?;
        scales.untouched(stream)?;
        return out.untouched(stream);
    }
    ran?;
    let x: Vec<Bound> = x_values.into_iter().map(Bound::exact).collect();
    let mut expected = oracle::activation::rows(spec.function, &x, *columns);
    if case.output == Output::Smoothed {
        let divided = expected.iter().zip(divisors.iter().cycle());
        expected = divided.map(|(y, &divisor)| y.over(divisor)).collect();
    }
    if case.output != Output::Float {
        out.untouched(stream)?;
        judge_quantised(*columns, &expected, &q.read(stream)?, &scales.read(stream)?)
    } else {
        q.untouched(stream)?;
        scales.untouched(stream)?;
        let expected: Vec<Bound> = expected.into_iter().map(|y| y.rounded(spec.dtype)).collect();
        judge("out", &dims, &out.read(stream)?, &expected)
    }
}

fn errors<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let clamped = |alpha, limit| ActivationSpec::glu(Glu::Clamped { alpha, limit }, GateLayout::Interleaved);
    let gated = ActivationSpec::glu(Glu::Plain(Activation::Silu), GateLayout::Split);
    let plain = ActivationSpec::new(Activation::Silu);
    let mut tensor = |dtype, dims: &[usize]| Guarded::<B>::output(stream, dtype, dims, Layout::Dense);
    let (x, out, flat) =
        (tensor(DType::F32, &[2, 3])?, tensor(DType::F32, &[2, 3])?, tensor(DType::F32, &[6])?);
    let (half, wide) = (tensor(DType::F16, &[2, 3])?, tensor(DType::F32, &[2, 6])?);
    let (q, scales, few) =
        (tensor(DType::I8, &[2, 3])?, tensor(DType::F32, &[2])?, tensor(DType::F32, &[1])?);
    let float = ActivationOut::Float;
    let int8 = |q, scales| ActivationOut::Int8PerToken { q, scales };
    let smoothed = |factors| ActivationOut::Int8Smoothed { q: &q.view, scales: &scales.view, factors };
    for (argument, spec, x, out) in [
        ("x", &gated, &x.view, float(&out.view)),
        ("x", &plain, &half.view, float(&out.view)),
        ("x", &plain, &x.view.narrow(0, 0..1)?, float(&out.view)),
        ("x", &plain, &flat.view, float(&out.view)),
        ("x", &plain, &half.view, int8(&q.view, &scales.view)),
        ("out", &plain, &x.view, float(&half.view)),
        ("out", &plain, &x.view, float(&flat.view)),
        ("out", &plain, &out.view, float(&out.view)),
        ("q", &plain, &x.view, int8(&out.view, &scales.view)),
        ("scales", &plain, &x.view, int8(&q.view, &few.view)),
        ("scales", &plain, &x.view, int8(&q.view, &half.view)),
        ("scales", &plain, &x.view, int8(&q.view, &x.view.narrow(0, 0..1)?.reshape(&[3])?.narrow(0, 0..2)?)),
        ("factors", &plain, &x.view, smoothed(&half.view)),
        ("factors", &plain, &x.view, smoothed(&scales.view)),
        ("glu", &clamped(f32::NAN, 7.0), &wide.view, float(&out.view)),
        ("glu", &clamped(f32::INFINITY, 7.0), &wide.view, float(&out.view)),
        ("glu", &clamped(1.0, 0.0), &wide.view, float(&out.view)),
        ("glu", &clamped(1.0, -7.0), &wide.view, float(&out.view)),
        ("glu", &clamped(1.0, f32::NAN), &wide.view, int8(&q.view, &scales.view)),
        ("glu", &clamped(1.0, f32::INFINITY), &wide.view, int8(&q.view, &scales.view)),
    ] {
        refused("activation", argument, ActivationArgs { spec, x, out }.check())?;
    }
    ActivationArgs { spec: &clamped(1.702, 7.0), x: &wide.view, out: float(&out.view) }.check()?;
    q.untouched(stream)?;
    scales.untouched(stream)?;
    out.untouched(stream)
}
