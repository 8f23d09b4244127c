//! Networks of experts, token by token; formulas from `halite_kernels::moe`.

use super::permutation::combined;
use crate::{
    oracle::{
        activation,
        linear::{After, epilogue},
    },
    tolerance::{Bound, TINY, U, quantised, summing},
};
use halite_hal::DType;
use halite_kernels::{
    linear::{ActivationFormat, LinearSpec},
    moe::{ExpertsSpec, FeedForward, RouterWeightOn},
};

/// One layer's weights.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Layer {
    /// `[weight_rows, in_features]`, dequantised.
    pub weights: Vec<f64>,
    /// `[weight_rows]`.
    pub bias: Option<Vec<f64>>,
}

/// Both layers of a network.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Network {
    /// The first.
    pub gate_up: Layer,
    /// The second.
    pub down: Layer,
}

/// What an INT8 product sees of a row: `q · scale`. Where a rounding to `q` may go either way, the error is a step.
pub fn through_int8(row: &[Bound]) -> Vec<Bound> {
    if row.iter().any(|y| !y.value.is_finite()) {
        return vec![Bound::exact(f64::NAN); row.len()];
    }
    let largest = row.iter().map(|y| y.value.abs()).fold(0.0, f64::max);
    let error = row.iter().map(|y| y.error).fold(0.0, f64::max);
    let mut scale = Bound { value: largest, error }.over(127.0);
    scale.value = scale.value.max(TINY);
    row.iter()
        .map(|&y| {
            let ratio = y.value / scale.value;
            let q = ratio.round_ties_even();
            let slack = quantised(y, scale) - 0.5;
            // Half a step less how far the value is from where it was rounded to: how far the next tie is.
            let steps = ((ratio - q).abs() + slack + 0.5).floor();
            Bound { value: q * scale.value, error: q.abs() * scale.error + steps * scale.value }
        })
        .collect()
}

/// A row as a layer's product sees it.
fn input(spec: &LinearSpec, row: &[Bound]) -> Vec<Bound> {
    match spec.activations {
        ActivationFormat::Int8PerToken => through_int8(row),
        _ => row.to_vec(),
    }
}

/// One layer over one row, as the product sees it.
fn product(spec: &LinearSpec, layer: &Layer, x: &[Bound]) -> Vec<Bound> {
    let products: Vec<Bound> = layer
        .weights
        .chunks_exact(spec.in_features)
        .map(|weights| {
            let (mut value, mut magnitude, mut error) = (0.0, 0.0, 0.0);
            for (x, w) in x.iter().zip(weights) {
                value += x.value * w;
                magnitude += (x.value * w).abs();
                error += x.error * w.abs();
            }
            let own = match spec.activations {
                // The sum is exact; then a conversion and two scales.
                ActivationFormat::Int8PerToken if !spec.weights.is_group_wise() => 4.0 * U * value.abs(),
                // Each group has a scale, and groups are added as floats.
                _ if spec.weights.is_group_wise() => (4.0 * U + summing(x.len())) * magnitude,
                _ => summing(x.len()) * magnitude,
            };
            Bound { value, error: error + own }
        })
        .collect();
    let after = After {
        out_features: spec.out_features,
        bias: layer.bias.as_deref(),
        activation: None,
        gate: spec.gate,
        soft_cap: None,
        residual: None,
        output_scale: None,
        output: spec.output,
    };
    epilogue(&products, &after)
}

/// A network over one row, as its first product sees it.
fn network(spec: &FeedForward, network: &Network, x: &[Bound]) -> Vec<Bound> {
    let mut row = product(&spec.gate_up, &network.gate_up, x);
    if let Some(function) = spec.function {
        let output = match spec.down.activations {
            ActivationFormat::Float(dtype) => dtype,
            _ => DType::F32,
        };
        let rows = activation::rows(function, &row, spec.down.in_features);
        row = rows.into_iter().map(|y| y.rounded(output)).collect();
    }
    product(&spec.down, &network.down, &input(&spec.down, &row))
}

/// All there is of a layer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Weights {
    /// The local experts.
    pub experts: Vec<Network>,
    /// The shared one.
    pub shared: Option<Network>,
    /// `[hidden]`.
    pub shared_gate: Option<Vec<f64>>,
}

/// One token: its row, and expert and weight of each slot.
pub fn token(
    spec: &ExpertsSpec,
    weights: &Weights,
    x: &[f64],
    slots: &[(i32, f64)],
    residual: Option<&[f64]>,
) -> Vec<Bound> {
    let exact: Vec<Bound> = x.iter().copied().map(Bound::exact).collect();
    let seen = input(&spec.expert.gate_up, &exact);
    let slots = slots.iter().map(|&(id, weight)| {
        let expert = i64::from(id) - spec.local.first as i64;
        let expert = usize::try_from(expert).ok().and_then(|expert| weights.experts.get(expert));
        let row = |expert| match spec.router_weight {
            RouterWeightOn::Input => {
                let weighed = seen.iter().map(|x| x.times(Bound::exact(weight)).rounded(spec.dtype));
                network(&spec.expert, expert, &weighed.collect::<Vec<_>>())
            }
            _ => network(&spec.expert, expert, &seen),
        };
        (expert.map(row), (spec.router_weight == RouterWeightOn::Output).then_some(weight))
    });
    let mut added = Vec::new();
    if let (Some(shared), Some(shared_weights)) = (&spec.shared, &weights.shared) {
        let mut row = network(shared, shared_weights, &input(&shared.gate_up, &exact));
        if let Some(gate) = &weights.shared_gate {
            let logit = Bound::sum(x.iter().zip(gate).map(|(x, gate)| x * gate));
            let share = logit.sigmoid();
            row.iter_mut().for_each(|y| *y = y.times(share).rounded(spec.dtype));
        }
        added.push(row);
    }
    if let Some(residual) = residual {
        added.push(residual.iter().copied().map(Bound::exact).collect());
    }
    let sum = combined(x.len(), slots, &added);
    sum.into_iter().map(|y| y.rounded(spec.dtype)).collect()
}
