//! Linear layers, judged.

mod errors;
pub(crate) mod exact_grid;
mod formats;
pub(crate) mod group_wise;
mod known;
pub(crate) mod lora;
mod operands;
mod outputs;
mod packed;

pub(crate) use formats::integer_specs;
pub(crate) use group_wise::integer_weights;
pub(crate) use operands::{Operand, Weights};

use crate::{
    case::{Group, Verdict},
    judge::{judge, unsupported},
    ledger::denied,
    oracle::{self, linear::After},
    poison::{Guarded, LAYOUTS, Layout},
    random::Rng,
};
use halite_kernels::{
    Backend, DType, Stream,
    activation::Activation,
    linear::{
        ActivationFormat, Epilogue, HostWeights, LinearArgs, LinearSpec, MAX_INT8_IN_FEATURES, OutputScale,
        WeightFormat,
    },
};

const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::Bf16];
const FLOAT_WEIGHTS: [WeightFormat; 3] = [WeightFormat::F32, WeightFormat::F16, WeightFormat::Bf16];
const FUNCTIONS: [Activation; 3] = [Activation::Silu, Activation::GeluErf, Activation::GeluTanh];

/// What activations and weights hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum Fill {
    /// No element small enough to hide.
    Away,
    /// Twelve octaves.
    Spread,
    /// Activations 6, weights 4: F16 sums overflow from K = 2,730 on.
    SixTimesFour,
    /// Both -128 throughout (INT8).
    Least,
    /// Activations 127, weights -128 (INT8).
    Opposite,
    /// Both 127 throughout (INT8): F32 sums are inexact from K = 1,041 on.
    Most,
    /// Small integers, and factors that are powers of two: every product and sum is exact in F32.
    Grid,
    /// Activations of 6e-38, weights with scales of 1e-23.
    Tiny,
}

/// One layer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub(crate) struct Case {
    /// Which layer.
    pub spec: LinearSpec,
    /// Rows of the activations.
    pub rows: usize,
    /// Whether there is a bias.
    pub bias: bool,
    /// Of a layer without a gate.
    pub activation: Option<Activation>,
    /// Bounds the results.
    pub soft_cap: Option<f32>,
    /// Whether there is a residual.
    pub residual: bool,
    /// Of an output of integers.
    pub output_scale: Option<OutputScale>,
    /// What activations and weights hold.
    pub fill: Fill,
    /// How activations, residual and output lie in memory.
    pub layout: Layout,
    /// Of the data.
    pub seed: u64,
}

impl Case {
    pub(crate) fn new(spec: LinearSpec, rows: usize) -> Self {
        let seed = (spec.in_features * 31 + spec.out_features * 7 + rows) as u64;
        Case {
            spec,
            rows,
            bias: false,
            activation: None,
            soft_cap: None,
            residual: false,
            output_scale: None,
            fill: Fill::Away,
            layout: Layout::Dense,
            seed,
        }
    }
}

/// All groups of this family.
pub(crate) fn groups<B: Backend>() -> Vec<Group<B>> {
    vec![
        Group::listed("linear", "edges", edges(), body),
        Group::listed("linear", "int8_exact", int8_exact(), body),
        Group::listed("linear", "epilogues", epilogues(), body),
        Group::listed("linear", "formats", formats::cases(), body),
        Group::listed("linear", "outputs", outputs::cases(), body),
        Group::listed("linear", "group_wise", group_wise::edges(), body),
        Group::listed("linear", "group_wise_exact", group_wise::exact(), body),
        Group::seeded("linear", "group_wise_random", 80, group_wise::random, body),
        Group::bodies("linear", "known", known::bodies()),
        Group::listed("linear", "lora", lora::cases(), lora::body),
        Group::seeded("linear", "lora_random", 40, lora::random, lora::body),
        Group::listed("linear", "supports", supports(), body),
        Group::seeded("linear", "exact_grid", 1000, exact_grid::random, exact_grid::body),
        Group::seeded("linear", "random", 80, random, body),
        Group::bodies("linear", "packed", packed::bodies()),
        Group::bodies("linear", "errors", errors::bodies()),
    ]
}

/// The formats that every shape is tried with.
pub(crate) fn specs(k: usize, n: usize) -> Vec<LinearSpec> {
    let floats = FLOAT_WEIGHTS.map(|weights| LinearSpec::float(k, n, weights));
    let int8 = LinearSpec::w8a8(k, n);
    floats.into_iter().chain([int8.clone().with_output(DType::I32), int8]).collect()
}

fn edges() -> Vec<Case> {
    let rows = [0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 15, 16, 17, 25, 33];
    let ks = [1, 2, 3, 4, 5, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 576, 1536];
    let ns = [1, 2, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 127, 128, 129, 576];
    let mut shapes: Vec<(usize, usize, usize)> = Vec::new();
    shapes.extend(rows.map(|rows| (rows, 70, 33)));
    shapes.extend(ks.map(|k| (3, k, 17)));
    shapes.extend(ks.map(|k| (1, k, 34)));
    shapes.extend(ns.map(|n| (5, 37, n)));
    shapes.extend(ns.map(|n| (1, 66, n)));
    let mut cases = Vec::new();
    for (number, (rows, k, n)) in shapes.into_iter().enumerate() {
        for spec in specs(k, n) {
            cases.push(Case { layout: LAYOUTS[number % 3], ..Case::new(spec, rows) });
        }
    }
    cases
}

fn int8_exact() -> Vec<Case> {
    let case = |k, n, rows, fill| Case {
        fill,
        layout: LAYOUTS[k % 3],
        ..Case::new(LinearSpec::w8a8(k, n).with_output(DType::I32), rows)
    };
    let mut cases = Vec::new();
    for k in 1..=130 {
        for fill in [Fill::Away, Fill::Least, Fill::Opposite, Fill::Most] {
            cases.push(case(k, 17, 5, fill));
        }
    }
    for k in [576, 1368, 2049, 5120, 65_793, 65_794, MAX_INT8_IN_FEATURES] {
        for fill in [Fill::Away, Fill::Least, Fill::Opposite, Fill::Most] {
            cases.push(case(k, 3, 2, fill));
        }
    }
    cases.push(case(9, 73_448, 1, Fill::Away));
    cases
}

fn epilogues() -> Vec<Case> {
    let mut cases = Vec::new();
    for (rows, k, n) in [(1, 33, 17), (5, 64, 48), (13, 20, 35)] {
        for spec in [
            LinearSpec::float(k, n, WeightFormat::F32),
            LinearSpec::float(k, n, WeightFormat::Bf16),
            LinearSpec::w8a8(k, n),
        ] {
            for bias in [false, true] {
                for residual in [false, true] {
                    for function in [None, Some(FUNCTIONS[0]), Some(FUNCTIONS[1]), Some(FUNCTIONS[2])] {
                        let case = Case { bias, residual, ..Case::new(spec.clone(), rows) };
                        if let Some(gate) = function {
                            let spec = spec.clone().gated(gate);
                            cases.push(Case { spec, layout: LAYOUTS[1], ..case.clone() });
                        }
                        cases.push(Case { activation: function, layout: LAYOUTS[1], ..case });
                    }
                }
            }
        }
    }
    // Soft-caps far below, about and far above the results, in tiles of every height.
    for (number, (rows, k, n)) in
        [(1, 33, 17), (2, 40, 33), (5, 64, 48), (13, 20, 35), (37, 30, 16)].into_iter().enumerate()
    {
        for spec in specs(k, n).into_iter().filter(|spec| spec.output != DType::I32) {
            for cap in [0.3, 4.0, 1e4] {
                let output = FLOATS[number % 3];
                let spec = spec.clone().with_output(output);
                let capped = Case { soft_cap: Some(cap), ..Case::new(spec.clone(), rows) };
                cases.push(Case { bias: true, layout: LAYOUTS[number % 3], ..capped.clone() });
                cases.push(Case { residual: true, activation: Some(FUNCTIONS[0]), ..capped.clone() });
                cases.push(Case { residual: true, spec: spec.gated(FUNCTIONS[number % 3]), ..capped });
            }
        }
    }
    // Sums that an F16 accumulator cannot hold, in every format.
    for spec in specs(3072, 5) {
        cases.push(Case { fill: Fill::SixTimesFour, ..Case::new(spec, 2) });
    }
    cases
}

fn supports() -> Vec<Case> {
    let (k, n) = (37, 19);
    let mut cases = Vec::new();
    for output in FLOATS {
        for gate in [None, Some(Activation::Silu)] {
            let mut add = |weights, activations| {
                let mut spec = LinearSpec::w8a8(k, n).with_output(output);
                (spec.weights, spec.activations, spec.gate) = (weights, activations, gate);
                cases.push(Case { bias: true, residual: true, ..Case::new(spec, 3) });
            };
            add(WeightFormat::Int8PerChannel, ActivationFormat::Int8PerToken);
            for weights in FLOAT_WEIGHTS {
                FLOATS.iter().for_each(|&dtype| add(weights, ActivationFormat::Float(dtype)));
            }
        }
    }
    cases
}

fn random(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    let (k, n) = (1 + rng.below(300), 1 + rng.below(120));
    let mut specs = specs(k, n);
    let mut spec = specs.swap_remove(rng.below(specs.len()));
    let bare = spec.output == DType::I32;
    let gated = !bare && rng.below(3) == 0;
    if gated {
        spec = spec.gated(rng.pick(&FUNCTIONS));
    }
    if !bare {
        spec = spec.with_output(rng.pick(&FLOATS));
    }
    let activation = if bare || gated || rng.coin() { None } else { Some(rng.pick(&FUNCTIONS)) };
    Case {
        bias: !bare && rng.coin(),
        residual: !bare && rng.coin(),
        activation,
        soft_cap: (!bare && rng.coin()).then(|| 0.1 + 20.0 * rng.unit()),
        // Gated sums of the other kind may leave F16.
        fill: if spec.output != DType::F16 && rng.coin() { Fill::Spread } else { Fill::Away },
        layout: rng.pick(&LAYOUTS),
        seed,
        ..Case::new(spec, rng.below(40))
    }
}

fn body<B: Backend>(device: &B, case: &Case) -> Verdict {
    let Case { spec, rows, layout, .. } = case;
    let stream = &mut device.stream()?;
    let mut rng = Rng::new(case.seed);
    let weights = Weights::new(&mut rng, spec, case.fill);
    if denied(device.linear_supports(spec)) {
        let pack = |weights: HostWeights<'_>| device.linear_pack(stream, weights.check(spec)?);
        return unsupported("linear", weights.with_host(pack));
    }
    let packed = weights.pack(device, stream, spec)?;
    let operand = Operand::<B>::new(stream, &mut rng, case)?;
    let n = spec.out_features;
    let bias = rng.spreads(spec.weight_rows());
    let (bias, biases) =
        Guarded::<B>::input(stream, DType::F32, &bias, &[spec.weight_rows()], Layout::Dense)?;
    let residual = rng.spreads(rows * n);
    let (residual, residuals) = Guarded::<B>::input(stream, spec.output, &residual, &[*rows, n], *layout)?;
    let views = operand.rows(0..*rows, spec.activations)?;
    let out = Guarded::<B>::output(stream, spec.output, &[*rows, n], *layout)?;

    stream.reserve(device.linear_workspace(&packed, *rows))?;
    let args = LinearArgs::<B> {
        x: views.activations(),
        weights: &packed,
        epilogue: Epilogue {
            bias: case.bias.then_some(&bias.view),
            activation: case.activation,
            soft_cap: case.soft_cap,
            residual: case.residual.then_some(&residual.view),
            output_scale: case.output_scale,
        },
        out: &out.view,
    };
    device.linear(stream, args.check()?)?;

    let products = operand.products(spec, *rows, &weights);
    let after = After {
        out_features: n,
        bias: case.bias.then_some(&biases),
        activation: case.activation,
        gate: spec.gate,
        soft_cap: case.soft_cap.map(f64::from),
        residual: case.residual.then_some(&residuals),
        output: spec.output,
        output_scale: case.output_scale,
    };
    let mut expected = oracle::linear::epilogue(&products, &after);
    if case.fill == Fill::Grid {
        expected.iter_mut().for_each(|y| y.error = 0.0);
    }
    judge("out", &[*rows, n], &out.read(stream)?, &expected)
}
