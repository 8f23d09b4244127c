//! Experts in every pair of formats that linear layers take: activations and weights, static scales, outlier columns.

use super::{experts::Case, permutation::LOADS};
use crate::{linear::integer_weights, poison::LAYOUTS};
use halite_kernels::{
    DType,
    activation::{Activation, GateLayout, Glu},
    linear::{ActivationFormat, LinearSpec, WeightFormat},
    moe::{ExpertsSpec, FeedForward, LocalExperts, RouterWeightOn},
    quantize::ScaleSource,
};

pub(crate) const ACTIVATIONS: [ActivationFormat; 7] = [
    ActivationFormat::Int8PerToken,
    ActivationFormat::Int8PerTensor,
    ActivationFormat::Int8PerGroup { group_size: 32 },
    ActivationFormat::AsymmetricPerToken(DType::I8),
    ActivationFormat::AsymmetricPerToken(DType::U8),
    ActivationFormat::AsymmetricPerTensor(DType::I8),
    ActivationFormat::AsymmetricPerTensor(DType::U8),
];
const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::Bf16];

/// Whether one scale serves all rows, so that it may be static.
pub(crate) fn is_per_tensor(format: ActivationFormat) -> bool {
    format.scale_dims(2, 1) == [1]
}

/// Every pair that makes sense of rows of `k`: those of integers, and floats of a type with integers.
fn pairs(k: usize, dtype: DType) -> Vec<(ActivationFormat, WeightFormat)> {
    let weights = || integer_weights(k).into_iter();
    let integers = ACTIVATIONS.into_iter().flat_map(|format| weights().map(move |weights| (format, weights)));
    let floats = weights().chain([WeightFormat::F32, WeightFormat::F16, WeightFormat::Bf16]);
    let floats = floats.map(|weights| (ActivationFormat::Float(dtype), weights));
    integers.chain(floats).filter(|&pair| layer(k, 8, pair).check().is_ok()).collect()
}

fn layer(k: usize, n: usize, (format, weights): (ActivationFormat, WeightFormat)) -> LinearSpec {
    LinearSpec::w8a8(k, n).with_weights(weights).with_activation_format(format)
}

/// A layer with another pair for its second product, and rows of `dtype`.
fn spec(
    [hidden, intermediate]: [usize; 2],
    [first, second]: [(ActivationFormat, WeightFormat); 2],
    dtype: DType,
    experts: LocalExperts,
) -> ExpertsSpec {
    let gate_up = layer(hidden, intermediate, first).gated(Activation::Silu).with_output(dtype);
    let down = layer(intermediate, hidden, second).with_output(dtype);
    ExpertsSpec::new(experts, 2, FeedForward::new(gate_up, down)).with_dtype(dtype)
}

fn of_expert(spec: &ExpertsSpec, expert: FeedForward) -> ExpertsSpec {
    let mut spec = spec.clone();
    spec.expert = expert;
    spec
}

/// Static where the format lets it.
fn with_static_scales(network: FeedForward) -> FeedForward {
    let source = |layer: &LinearSpec| match is_per_tensor(layer.activations) {
        true => ScaleSource::Static,
        false => ScaleSource::Dynamic,
    };
    let (gate_up, down) = (source(&network.gate_up), source(&network.down));
    network.with_scales(gate_up, down)
}

/// Outlier columns in both layers, as far as they can have them.
fn with_outliers(mut network: FeedForward, dtype: DType) -> FeedForward {
    let inner = network.gate_up.output;
    for (layer, columns, dtype) in [(&mut network.gate_up, 5, dtype), (&mut network.down, 3, inner)] {
        let kept = layer.clone().with_outliers(columns, dtype);
        if kept.check().is_ok() {
            *layer = kept;
        }
    }
    network
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, dtype) in FLOATS.into_iter().enumerate() {
        let pairs = pairs(64, dtype);
        for (place, &first) in pairs.iter().enumerate() {
            // The other pair is far on in the list: another format of rows.
            let second = pairs[(place + 37 * (number + 1)) % pairs.len()];
            let (local, loads) = (LocalExperts::range(1, 3), LOADS[place % LOADS.len()]);
            let mut spec = spec([64, 32], [first, second], dtype, local);
            if spec.check().is_err() {
                spec.expert.down = layer(32, 64, first).with_output(dtype);
            }
            if place % 3 == 0 {
                spec = spec.with_router_weight(RouterWeightOn::Input);
            }
            let case = |expert: FeedForward| {
                let spec = of_expert(&spec, expert);
                Case { loads, bias: place % 2 == 0, layout: LAYOUTS[place % 3], ..Case::new(spec, 5, 6) }
            };
            let (dynamic, fixed) = (spec.expert.clone(), with_static_scales(spec.expert.clone()));
            let kept = [with_outliers(dynamic.clone(), dtype), with_outliers(fixed.clone(), dtype)];
            let mut networks = vec![dynamic, fixed];
            networks.extend(kept);
            networks.dedup();
            cases.extend(networks.into_iter().map(case));
        }
    }
    cases.extend(blocks());
    cases.extend(around());
    cases
}

/// Blocks of 256 in both layers.
fn blocks() -> Vec<Case> {
    let of = |format| {
        let pair = (format, WeightFormat::Q4K);
        Case::new(spec([256, 256], [pair, pair], DType::F32, LocalExperts::all(2)), 2, 3)
    };
    [ActivationFormat::Int8PerTensor, ActivationFormat::Int8PerGroup { group_size: 64 }].map(of).to_vec()
}

/// Every format of rows with a function between the layers, a shared expert, and no rows at all.
fn around() -> Vec<Case> {
    let mut cases = Vec::new();
    for format in ACTIVATIONS {
        let pair = (format, WeightFormat::Int8PerChannel);
        let plain = spec([33, 17], [pair, pair], DType::F32, LocalExperts::all(4));
        let mut wide = plain.expert.clone();
        (wide.gate_up.gate, wide.gate_up.out_features) = (None, 34);
        for layout in [GateLayout::Split, GateLayout::Interleaved] {
            for dtype in [DType::F32, DType::Bf16] {
                let mut expert = wide.clone().with_glu(Glu::CLAMPED_SWIGLU, layout);
                expert.gate_up.output = dtype;
                let expert = with_outliers(with_static_scales(expert), DType::F32);
                cases.push(Case::new(of_expert(&plain, expert), 4, 5));
            }
        }
        for shared in [plain.expert.clone(), with_static_scales(plain.expert.clone())] {
            for router_weight in [RouterWeightOn::Output, RouterWeightOn::Input] {
                let spec = plain.clone().with_shared(with_outliers(shared.clone(), DType::F32));
                let case = Case::new(spec.with_router_weight(router_weight), 4, 5);
                cases.push(Case { shared_gate: true, residual: true, ..case });
            }
        }
        // Rows that are only wanted elsewhere, one row, and none.
        for (tokens, loads) in [(3, LOADS[3]), (1, LOADS[0]), (0, LOADS[0])] {
            let expert = with_outliers(plain.expert.clone(), DType::F32);
            let mut spec = of_expert(&plain, expert);
            spec.top_k = 1;
            cases.push(Case { loads, ..Case::new(spec, 4, tokens) });
        }
    }
    cases
}
