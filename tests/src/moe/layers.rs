//! The layers that experts are judged by.

use super::{
    experts::Case,
    permutation::{LOADS, Loads},
};
use crate::{linear::Fill, poison::LAYOUTS, random::Rng};
use halite_kernels::{
    DType,
    activation::{Activation, Function, GateLayout, Glu},
    linear::{ActivationFormat, GroupOffset, LinearSpec, WeightFormat},
    moe::{ExpertsSpec, FeedForward, LocalExperts, RouterWeightOn},
};

const FUNCTIONS: [Activation; 3] = [Activation::Silu, Activation::GeluErf, Activation::GeluTanh];
const UNITS: [Glu; 3] = [Glu::CLAMPED_SWIGLU, Glu::Plain(Activation::Silu), Glu::Plain(Activation::GeluTanh)];

/// How many formats experts are tried in.
pub(crate) const FORMATS: usize = 5;

/// A linear layer of each format that experts are tried in: F32, BF16, W8A8, W4A8, W4A16 (whose other operand is F32).
pub(crate) fn formats(k: usize, n: usize) -> [LinearSpec; FORMATS] {
    let int4 = |group_size, offset| WeightFormat::Int4PerGroup { group_size, offset };
    [
        LinearSpec::float(k, n, WeightFormat::F32),
        LinearSpec::float(k, n, WeightFormat::Bf16),
        LinearSpec::w8a8(k, n),
        LinearSpec::w8a8(k, n).with_weights(int4(32, GroupOffset::ZeroPoint)),
        LinearSpec::float(k, n, int4(16, GroupOffset::Symmetric)),
    ]
}

/// A gated network in one of the formats.
pub(crate) fn gated(format: usize, hidden: usize, intermediate: usize, gate: Activation) -> FeedForward {
    let [gate_up, down] = [(hidden, intermediate), (intermediate, hidden)]
        .map(|(k, n)| formats(k, n).into_iter().cycle().nth(format).unwrap_or(LinearSpec::w8a8(k, n)));
    FeedForward::new(gate_up.gated(gate), down)
}

/// A network with a unit between its layers.
fn with_unit(format: usize, hidden: usize, intermediate: usize, glu: Glu, layout: GateLayout) -> FeedForward {
    let mut network = gated(format, hidden, intermediate, Activation::Silu);
    (network.gate_up.gate, network.gate_up.out_features) = (None, 2 * intermediate);
    network.with_glu(glu, layout)
}

pub(super) fn edges() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, (experts, top_k, tokens)) in
        [(4, 2, 0), (4, 2, 1), (1, 1, 3), (8, 2, 7), (8, 8, 2), (16, 1, 20)].into_iter().enumerate()
    {
        for format in 0..FORMATS {
            for (place, loads) in LOADS.into_iter().enumerate() {
                let (hidden, intermediate) = [(33, 17), (64, 20), (1, 1)][(number + place) % 3];
                let network = gated(format, hidden, intermediate, Activation::Silu);
                let spec = ExpertsSpec::new(LocalExperts::all(experts), top_k, network);
                let layout = LAYOUTS[(number + place) % 3];
                cases.push(Case { loads, layout, ..Case::new(spec, experts, tokens) });
            }
        }
    }
    cases
}

pub(super) fn functions() -> Vec<Case> {
    let mut cases = Vec::new();
    for format in 0..FORMATS {
        let mut add = |network: FeedForward, bias| {
            let spec = ExpertsSpec::new(LocalExperts::all(4), 2, network);
            // Twelve octaves, so that both limits of the clamped unit are reached.
            for fill in [Fill::Away, Fill::Spread] {
                cases.push(Case { bias, fill, ..Case::new(spec.clone(), 4, 5) });
            }
        };
        for bias in [false, true] {
            FUNCTIONS.into_iter().for_each(|function| add(gated(format, 40, 18, function), bias));
            for glu in UNITS {
                for layout in [GateLayout::Split, GateLayout::Interleaved] {
                    add(with_unit(format, 40, 18, glu, layout), bias);
                }
            }
        }
        // No gate at all.
        let mut plain = gated(format, 24, 18, Activation::Silu);
        plain.gate_up.gate = None;
        add(plain.with_function(Function::Plain(Activation::GeluErf)), true);
    }
    cases
}

pub(super) fn local_ranges() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, local) in [
        LocalExperts::range(0, 3),
        LocalExperts::range(3, 3),
        LocalExperts::range(5, 3),
        LocalExperts::range(7, 1),
    ]
    .into_iter()
    .enumerate()
    {
        for format in 0..FORMATS {
            for loads in [Loads::Spread, Loads::One, Loads::Elsewhere, Loads::Garbage] {
                let spec = ExpertsSpec::new(local, 3, gated(format, 33, 17, FUNCTIONS[number % 3]));
                let bias = number % 2 == 1;
                cases.push(Case { loads, bias, ..Case::new(spec, 8, 6) });
            }
        }
    }
    cases
}

/// Shared experts, residuals and router weights on the input.
pub(super) fn sums() -> Vec<Case> {
    let mut cases = Vec::new();
    for (format, layout) in LAYOUTS.into_iter().enumerate() {
        for router_weight in [RouterWeightOn::Output, RouterWeightOn::Input] {
            let spec = ExpertsSpec::new(LocalExperts::range(1, 4), 2, gated(format, 33, 17, FUNCTIONS[0]))
                .with_router_weight(router_weight);
            cases.push(Case { residual: true, ..Case::new(spec.clone(), 6, 5) });
            cases.push(Case { bias: true, ..Case::new(spec.clone(), 6, 5) });
            for shared_format in 0..FORMATS {
                let shared = gated(shared_format, 33, 29, FUNCTIONS[1]);
                let spec = spec.clone().with_shared(shared);
                for shared_gate in [false, true] {
                    let case = Case { shared_gate, bias: format == 1, ..Case::new(spec.clone(), 6, 5) };
                    cases.push(Case { residual: shared_format > 0, layout, ..case });
                }
            }
        }
    }
    // Llama 4: one expert a token, its weight on the input, one shared expert.
    let spec = ExpertsSpec::new(LocalExperts::all(16), 1, gated(1, 48, 32, FUNCTIONS[0]))
        .with_shared(gated(1, 48, 32, FUNCTIONS[0]))
        .with_router_weight(RouterWeightOn::Input);
    cases.push(Case::new(spec, 16, 9));
    cases
}

pub(super) fn supports() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in [DType::F32, DType::F16, DType::Bf16] {
        for format in 0..FORMATS {
            for inner in [DType::F32, DType::F16, DType::Bf16] {
                let mut network = gated(format, 20, 12, Activation::Silu);
                network.gate_up.output = inner;
                network.down.output = dtype;
                if matches!(network.down.activations, ActivationFormat::Float(_)) {
                    network.gate_up = network.gate_up.with_activations(dtype);
                    network.down = network.down.with_activations(inner);
                }
                let spec = ExpertsSpec::new(LocalExperts::all(3), 2, network.clone()).with_dtype(dtype);
                cases.push(Case { residual: true, ..Case::new(spec.with_shared(network), 3, 4) });
            }
        }
    }
    cases
}

pub(super) fn random(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    let (hidden, intermediate) = (1 + rng.below(70), 1 + rng.below(40));
    let experts = 1 + rng.below(9);
    let first = rng.below(experts);
    let local = LocalExperts::range(first, 1 + rng.below(experts - first));
    let network = |rng: &mut Rng| {
        if rng.coin() {
            return gated(rng.below(FORMATS), hidden, intermediate, rng.pick(&FUNCTIONS));
        }
        let layout = rng.pick(&[GateLayout::Split, GateLayout::Interleaved]);
        with_unit(rng.below(FORMATS), hidden, intermediate, rng.pick(&UNITS), layout)
    };
    let mut spec = ExpertsSpec::new(local, 1 + rng.below(experts), network(&mut rng))
        .with_router_weight(rng.pick(&[RouterWeightOn::Output, RouterWeightOn::Input]));
    if rng.coin() {
        spec = spec.with_shared(network(&mut rng));
    }
    let loads = rng.pick(&LOADS);
    Case {
        loads,
        bias: rng.coin(),
        shared_gate: rng.coin(),
        residual: rng.coin(),
        fill: if rng.coin() { Fill::Spread } else { Fill::Away },
        layout: rng.pick(&LAYOUTS),
        seed,
        ..Case::new(spec, experts, rng.below(12))
    }
}
