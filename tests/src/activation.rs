//! Activations, judged: plain, gated, with the quantisation.

use crate::{
    case::{Group, Verdict},
    judge::{judge, refused, unsupported},
    ledger::denied,
    oracle,
    poison::{Guarded, LAYOUTS, Layout},
    quantize::{self, outputs::Outputs},
    random::Rng,
    tolerance::Bound,
};
use halite_kernels::{
    Backend, DType, Stream,
    activation::{Activation, ActivationArgs, ActivationOut, ActivationSpec, Function, GateLayout, Glu},
    linear::ActivationFormat,
    quantize::{QuantizeOut, QuantizeSpec},
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

/// One call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub(crate) struct Case {
    /// What to compute.
    pub spec: ActivationSpec,
    /// How the result is quantised, if it is.
    pub quantize: Option<QuantizeSpec>,
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
                cases.push(Case { spec, quantize: None, rows, columns, layout, extremes, seed });
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
                cases.push(Case { spec, quantize: None, rows: 3, columns, layout, extremes, seed });
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
                let quantize = Some(QuantizeSpec::INT8_PER_TOKEN);
                cases.push(Case { spec, quantize, rows, columns, layout, extremes, seed: 3 });
            }
        }
    }
    let specs = specs();
    for columns in [0, 1, 33, 48, 160] {
        for (number, quantize) in quantize::fused(columns).into_iter().enumerate() {
            let spec = specs[(number + columns) % specs.len()].clone().with_dtype(FLOATS[number % 3]);
            let (layout, quantize, rows) = (LAYOUTS[number % 3], Some(quantize), [4, 0, 1][columns % 3]);
            cases.push(Case { spec, quantize, rows, columns, layout, extremes: number % 4 == 0, seed: 3 });
        }
    }
    cases
}

fn supports() -> Vec<Case> {
    let mut cases = Vec::new();
    for spec in specs() {
        for dtype in FLOATS {
            for quantize in [None, Some(QuantizeSpec::INT8_PER_TOKEN)] {
                let (spec, layout) = (spec.clone().with_dtype(dtype), LAYOUTS[1]);
                cases.push(Case { spec, quantize, rows: 3, columns: 37, layout, extremes: true, seed: 1 });
            }
        }
    }
    cases
}

fn random(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    let (specs, columns) = (specs(), rng.below(100));
    let formats = quantize::fused(columns);
    Case {
        spec: specs[rng.below(specs.len())].clone().with_dtype(rng.pick(&FLOATS)),
        quantize: rng.coin().then(|| formats[rng.below(formats.len())].clone()),
        rows: rng.below(20),
        columns,
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
        // Squares and products stay within the type.
        let extremes =
            [0.0, -0.0, 7.0, -7.0, 30.0, -30.0, 100.0, -100.0, -88.5, 50.5, -150.5, 1e-30, f32::NAN];
        let far = match (spec.dtype, spec.function) {
            (DType::F32, Function::Plain(_)) => &[f32::INFINITY, f32::NEG_INFINITY, -1e35][..],
            (DType::F32, _) => &[-1e31, -1e35],
            _ => &[],
        };
        let extremes = extremes.iter().chain(far);
        values.iter_mut().step_by(3).zip(extremes).for_each(|(value, &extreme)| *value = extreme);
    }
    let dims = [*rows, *columns];
    let (x, x_values) = Guarded::<B>::input(stream, spec.dtype, &values, &[*rows, width], *layout)?;
    let out = Guarded::<B>::output(stream, spec.dtype, &dims, *layout)?;
    let quantize = case.quantize.clone().unwrap_or(QuantizeSpec::INT8_PER_TOKEN);
    let integers = Outputs::<B>::new(stream, &mut Rng::new(case.seed ^ 5), &quantize, &dims, *layout)?;
    let mut support = device.activation_supports(spec);
    let target = match &case.quantize {
        Some(quantize) => {
            support = device.activation_quantize_supports(spec, quantize);
            stream.reserve(device.activation_quantize_workspace(spec, quantize, *rows, *columns))?;
            ActivationOut::Quantized { spec: quantize, out: integers.out() }
        }
        None => ActivationOut::Float(&out.view),
    };
    let ran = device.activation(stream, ActivationArgs { spec, x: &x.view, out: target }.check()?);
    if denied(support) {
        unsupported("activation", ran)?;
        integers.untouched(stream)?;
        return out.untouched(stream);
    }
    ran?;
    let x: Vec<Bound> = x_values.into_iter().map(Bound::exact).collect();
    let expected = oracle::activation::rows(spec.function, &x, *columns);
    if case.quantize.is_some() {
        out.untouched(stream)?;
        integers.judge(stream, &expected).map(drop)
    } else {
        integers.untouched(stream)?;
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
    let per_token = QuantizeSpec::INT8_PER_TOKEN;
    let quantized = |spec, out| ActivationOut::Quantized { spec, out };
    let int8 = |q, scales| quantized(&per_token, QuantizeOut::new(q, scales));
    let with_factors = per_token.clone().with_smoothing();
    let usual = QuantizeOut::new(&q.view, &scales.view);
    let smoothed = |factors| quantized(&with_factors, usual.with_smoothing(factors));
    let unsigned = per_token.clone().with_output(ActivationFormat::AsymmetricPerToken(DType::U8));
    let late = per_token.clone().with_output(ActivationFormat::AsymmetricPerTensor(DType::I8));
    let aside = per_token.clone().with_outlier_columns(4);
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
        ("smoothing", &plain, &x.view, smoothed(&half.view)),
        ("smoothing", &plain, &x.view, smoothed(&scales.view)),
        ("smoothing", &plain, &x.view, quantized(&with_factors, usual)),
        ("q", &plain, &x.view, quantized(&unsigned, usual)),
        ("outliers", &plain, &x.view, quantized(&aside, usual)),
        ("rotation", &plain, &x.view, quantized(&per_token.clone().with_hadamard(2), usual)),
        ("input", &plain, &x.view, quantized(&QuantizeSpec::new(DType::Bf16), usual)),
        // One scale of all rows is known when the last of them is.
        ("output", &plain, &x.view, quantized(&late, usual)),
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
