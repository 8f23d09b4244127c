//! Norms, judged: alone, with a residual before or after, with the quantisation.

mod errors;

use crate::{
    case::{Group, Verdict},
    judge::{judge, unsupported},
    ledger::denied,
    oracle,
    poison::{Guarded, LAYOUTS, Layout},
    quantize::{self, outputs::Outputs},
    random::Rng,
    tolerance::Bound,
};
use halite_kernels::{
    Backend, DType, Stream,
    norm::{NormArgs, NormKind, NormOut, NormResidual, NormSpec},
    quantize::QuantizeSpec,
};

const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::Bf16];
const KINDS: [NormKind; 2] = [NormKind::Rms, NormKind::Layer];

/// Residual and quantisation.
const FUSIONS: [(Option<Side>, bool); 6] = [
    (None, false),
    (None, true),
    (Some(Side::Before), false),
    (Some(Side::Before), true),
    (Some(Side::After), false),
    (Some(Side::After), true),
];

/// What the rows hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum Data {
    /// Magnitudes in [0.5, 1).
    Away,
    /// Zeros.
    Zeros,
    /// A mean that is 200 times the deviation: one-pass variances cancel.
    Offset,
    /// Magnitudes near 1e-20: their squares are subnormal.
    Small,
    /// Magnitudes near 1e-25, and no eps: their squares are 0 in F32.
    Tiny,
    /// Magnitudes near 1e25: their squares leave F32.
    Huge,
}

/// What the normed rows are multiplied by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum Weights {
    /// Nothing.
    None,
    /// The same weights and biases for every row.
    Shared,
    /// Each head's own, where there are heads.
    PerHead,
}

/// Where the residual is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum Side {
    /// To what is normalised.
    Before,
    /// To the result.
    After,
}

/// One call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub(crate) struct Case {
    /// What to compute.
    pub spec: NormSpec,
    /// Outer dimensions: `[rows]` or `[tokens, heads]`.
    pub outer: Vec<usize>,
    /// Columns.
    pub columns: usize,
    /// The weights.
    pub weights: Weights,
    /// Where a residual is added.
    pub residual: Option<Side>,
    /// Whether a layer norm has a bias.
    pub bias: bool,
    /// How the result is quantised, if it is.
    pub quantize: Option<QuantizeSpec>,
    /// What the rows hold.
    pub data: Data,
    /// How tensors lie in memory.
    pub layout: Layout,
    /// Of the data.
    pub seed: u64,
}

impl Case {
    fn new(kind: NormKind, dtype: DType, outer: &[usize], columns: usize) -> Self {
        let spec = match kind {
            NormKind::Layer => NormSpec::layer(1e-5),
            _ => NormSpec::rms(1e-5),
        };
        Case {
            spec: spec.with_dtype(dtype),
            outer: outer.to_vec(),
            columns,
            weights: Weights::Shared,
            residual: None,
            bias: kind == NormKind::Layer,
            quantize: None,
            data: Data::Away,
            layout: Layout::Dense,
            seed: columns as u64,
        }
    }
}

/// All groups of this family.
pub(crate) fn groups<B: Backend>() -> Vec<Group<B>> {
    vec![
        Group::listed("norm", "edges", edges(), body),
        Group::listed("norm", "fused", fused(), body),
        Group::listed("norm", "quantised", quantised(), body),
        Group::listed("norm", "weights", weights(), body),
        Group::listed("norm", "extremes", extremes(), body),
        Group::listed("norm", "supports", supports(), body),
        Group::seeded("norm", "random", 60, random, body),
        Group::bodies("norm", "errors", vec![("wrong specs, shapes, types and overlaps", errors::errors)]),
    ]
}

fn edges() -> Vec<Case> {
    let mut cases = Vec::new();
    let columns = [1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 576, 1536, 5120];
    for (number, columns) in columns.into_iter().enumerate() {
        for kind in KINDS {
            for outer in [&[0][..], &[1], &[5], &[2, 3], &[3, 0]] {
                let layout = LAYOUTS[number % 3];
                cases.push(Case { layout, ..Case::new(kind, DType::F32, outer, columns) });
            }
        }
    }
    cases
}

fn fused() -> Vec<Case> {
    let mut cases = Vec::new();
    for columns in [1, 16, 17, 33, 64, 100, 576] {
        for kind in KINDS {
            for (residual, quantised) in FUSIONS {
                for outer in [&[4][..], &[3, 2], &[3, 1], &[0]] {
                    let layout = if outer.len() == 2 { Layout::Heads { after: 3 } } else { LAYOUTS[1] };
                    let case = Case::new(kind, DType::F32, outer, columns);
                    cases.push(Case { residual, quantize: int8(quantised), layout, ..case });
                }
            }
        }
    }
    cases
}

/// In every format, with all that may happen before, over rows and heads.
fn quantised() -> Vec<Case> {
    let mut cases = Vec::new();
    let shapes = [&[4][..], &[3, 2], &[3, 1], &[0], &[2, 0]];
    for columns in [1, 33, 48, 160] {
        for (number, quantize) in quantize::fused(columns).into_iter().enumerate() {
            let outer = shapes[(number + columns) % shapes.len()];
            let layout = if outer.len() == 2 { Layout::Heads { after: 3 } } else { LAYOUTS[number % 3] };
            let case = Case::new(KINDS[number % 2], FLOATS[number % 3], outer, columns);
            let residual = [None, Some(Side::Before), Some(Side::After)][columns % 3];
            cases.push(Case { quantize: Some(quantize), residual, layout, ..case });
        }
    }
    cases
}

fn int8(quantised: bool) -> Option<QuantizeSpec> {
    quantised.then_some(QuantizeSpec::INT8_PER_TOKEN)
}

fn weights() -> Vec<Case> {
    let mut cases = Vec::new();
    for columns in [1, 15, 16, 33, 64, 128] {
        for kind in KINDS {
            for weights in [Weights::None, Weights::Shared, Weights::PerHead] {
                for offset in [0.0, 1.0, -0.25] {
                    for outer in [&[3][..], &[2, 3], &[3, 1], &[2, 0]] {
                        let case = Case::new(kind, DType::F32, outer, columns);
                        let layout = if outer.len() == 2 { Layout::Heads { after: 3 } } else { LAYOUTS[1] };
                        let quantize = int8(columns == 33);
                        let mut case = Case { weights, layout, quantize, ..case };
                        if weights != Weights::None {
                            case.spec.weight_offset = offset;
                        }
                        cases.push(case);
                    }
                }
            }
        }
    }
    cases
}

fn extremes() -> Vec<Case> {
    let mut cases = Vec::new();
    for kind in KINDS {
        for data in [Data::Zeros, Data::Offset, Data::Small, Data::Tiny, Data::Huge] {
            for quantised in [false, true] {
                let quantize = int8(quantised);
                let mut case = Case { data, quantize, ..Case::new(kind, DType::F32, &[3], 65) };
                if data == Data::Tiny {
                    case.spec.eps = 0.0;
                }
                cases.push(case);
            }
        }
    }
    cases
}

fn supports() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in FLOATS {
        for kind in KINDS {
            for (residual, quantised) in FUSIONS {
                let quantize = int8(quantised);
                cases.push(Case { residual, quantize, ..Case::new(kind, dtype, &[3], 35) });
            }
        }
    }
    cases
}

fn random(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    let outer = if rng.coin() { vec![rng.below(9)] } else { vec![rng.below(5), rng.below(5)] };
    let case = Case::new(rng.pick(&KINDS), rng.pick(&FLOATS), &outer, 1 + rng.below(200));
    let (residual, quantised) = rng.pick(&FUSIONS);
    let formats = quantize::fused(case.columns);
    let quantize = quantised.then(|| formats[rng.below(formats.len())].clone());
    let weights = rng.pick(&[Weights::Shared, Weights::Shared, Weights::PerHead, Weights::None]);
    let offset = if weights != Weights::None && rng.coin() { rng.away() } else { 0.0 };
    Case {
        spec: case.spec.clone().with_weight_offset(offset),
        weights,
        residual,
        quantize,
        bias: case.spec.kind == NormKind::Layer && rng.coin(),
        layout: rng.pick(&[LAYOUTS[0], LAYOUTS[1], Layout::Heads { after: 2 }]),
        seed,
        ..case
    }
}

fn body<B: Backend>(device: &B, case: &Case) -> Verdict {
    let Case { spec, columns, layout, .. } = case;
    let (dtype, columns) = (spec.dtype, *columns);
    let stream = &mut device.stream()?;
    let mut rng = Rng::new(case.seed);
    let dims: Vec<usize> = case.outer.iter().copied().chain([columns]).collect();
    let rows: usize = case.outer.iter().product();
    let data = |rng: &mut Rng| -> Vec<f32> {
        let values = rng.aways(rows * columns);
        let shape = |x: f32| match case.data {
            Data::Away => x,
            Data::Zeros => 0.0,
            Data::Offset => 200.0 + x,
            Data::Small => 1e-20 * x,
            Data::Tiny => 1e-25 * x,
            Data::Huge => 1e25 * x,
        };
        values.into_iter().map(shape).collect()
    };
    let (x, x_values) = Guarded::<B>::input(stream, dtype, &data(&mut rng), &dims, *layout)?;
    let (residual, residual_values) = Guarded::<B>::input(stream, dtype, &data(&mut rng), &dims, *layout)?;
    let sum = Guarded::<B>::output(stream, dtype, &dims, *layout)?;
    let own = case.weights == Weights::PerHead && case.outer.len() == 2;
    let vectors = if own { case.outer[1] } else { 1 };
    let vector_dims = if own { &dims[1..] } else { &dims[dims.len() - 1..] };
    let mut vector = |rng: &mut Rng| {
        let layout = if own { LAYOUTS[1] } else { Layout::Dense };
        Guarded::<B>::input(stream, DType::F32, &rng.aways(vectors * columns), vector_dims, layout)
    };
    let ((weight, weights), (bias, biases)) = (vector(&mut rng)?, vector(&mut rng)?);
    let (weighted, biased) = (case.weights != Weights::None, case.bias);
    let out = Guarded::<B>::output(stream, dtype, &dims, *layout)?;
    let quantize = case.quantize.clone().unwrap_or(QuantizeSpec::INT8_PER_TOKEN);
    let integers = Outputs::<B>::new(stream, &mut rng, &quantize, &dims, *layout)?;

    let args = NormArgs {
        spec,
        x: &x.view,
        residual: case.residual.map(|side| match side {
            Side::Before => NormResidual::Before { residual: &residual.view, sum: &sum.view },
            Side::After => NormResidual::After { residual: &residual.view },
        }),
        weight: weighted.then_some(&weight.view),
        bias: biased.then_some(&bias.view),
        out: match &case.quantize {
            Some(spec) => NormOut::Quantized { spec, out: integers.out() },
            None => NormOut::Float(&out.view),
        },
    };
    let mut support = device.norm_supports(spec);
    if let Some(quantize) = &case.quantize {
        support = device.norm_quantize_supports(spec, quantize);
        stream.reserve(device.norm_quantize_workspace(spec, quantize, rows, columns))?;
    }
    let ran = device.norm(stream, args.check()?);
    if denied(support) {
        unsupported("norm", ran)?;
        integers.untouched(stream)?;
        sum.untouched(stream)?;
        return out.untouched(stream);
    }
    ran?;

    let mut input: Vec<Bound> = x_values.iter().map(|&x| Bound::exact(x)).collect();
    if case.residual == Some(Side::Before) {
        input = input.iter().zip(&residual_values).map(|(x, &r)| x.plus(Bound::exact(r))).collect();
        let sums: Vec<Bound> = input.iter().map(|sum| sum.rounded(dtype)).collect();
        let stored = sum.read(stream)?;
        judge("sum", &dims, &stored, &sums)?;
        // What is normalised is the sum as it is stored.
        input = stored.into_iter().map(Bound::exact).collect();
    } else {
        sum.untouched(stream)?;
    }
    let mut expected = Vec::new();
    for (number, row) in input.chunks_exact(columns).enumerate() {
        let own = number % vectors * columns..(number % vectors + 1) * columns;
        let (weight, bias) = (weighted.then_some(&weights[own.clone()]), biased.then_some(&biases[own]));
        expected.extend(oracle::norm::row(spec, row, weight, bias));
    }
    if case.residual == Some(Side::After) {
        expected = expected.iter().zip(&residual_values).map(|(y, &r)| y.plus(Bound::exact(r))).collect();
    }
    if case.quantize.is_some() {
        out.untouched(stream)?;
        integers.judge(stream, &expected).map(drop)
    } else {
        integers.untouched(stream)?;
        let expected: Vec<Bound> = expected.into_iter().map(|y| y.rounded(dtype)).collect();
        judge("out", &dims, &out.read(stream)?, &expected)
    }
}
