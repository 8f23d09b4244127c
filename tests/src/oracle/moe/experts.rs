//! Networks of experts, an expert's rows at a time; formulas from `halite_kernels::moe`.

use super::{
    permutation::combined,
    quantised::{Known, Rows},
};
use crate::{
    oracle::{
        activation,
        linear::{After, epilogue},
    },
    tolerance::{Bound, U, summing},
};
use halite_hal::DType;
use halite_kernels::{
    linear::{ActivationFormat, LinearSpec},
    moe::{ExpertsSpec, FeedForward, RouterWeightOn},
};

/// One layer's weights, and what its rows are quantised with.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Layer {
    /// `[weight_rows, in_features]`, dequantised.
    pub weights: Vec<f64>,
    /// `[weight_rows]`.
    pub bias: Option<Vec<f64>>,
    /// Columns that are kept in float, ascending.
    pub outlier_columns: Vec<u32>,
    /// `[weight_rows, columns]` of them.
    pub outliers: Vec<f64>,
    /// Static scales.
    pub known: Option<Known>,
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

/// Rows as a layer's product sees them, of which all are one expert's.
fn seen(spec: &LinearSpec, layer: &Layer, rows: &[Vec<Bound>]) -> Rows {
    let mut seen = Rows { all: rows.to_vec(), kept: Vec::new() };
    for row in &mut seen.all {
        let columns = layer.outlier_columns.iter().map(|&column| column as usize);
        seen.kept
            .push(columns.map(|column| std::mem::replace(&mut row[column], Bound::exact(0.0))).collect());
    }
    seen.quantise(spec.activations, layer.known);
    seen
}

/// Whether rows are quantised before they are an expert's.
fn is_sent_as_int8(spec: &LinearSpec) -> bool {
    spec.activations == ActivationFormat::Int8PerToken && spec.outliers.is_none()
}

/// One layer over rows, as the product sees them.
fn products(spec: &LinearSpec, layer: &Layer, rows: &Rows) -> Vec<Vec<Bound>> {
    let grouped = matches!(spec.activations, ActivationFormat::Int8PerGroup { .. });
    let one_sum = spec.activations.is_quantized() && !grouped && !spec.weights.is_group_wise();
    let mut is_outlier = vec![false; spec.in_features];
    layer.outlier_columns.iter().for_each(|&column| is_outlier[column as usize] = true);
    let of_row = |(x, kept): (&Vec<Bound>, &Vec<Bound>)| {
        let channels = layer.weights.chunks_exact(spec.in_features).enumerate();
        let products = channels.map(|(channel, weights)| {
            let (mut value, mut magnitude, mut error) = (0.0, 0.0, 0.0);
            for ((x, w), _) in x.iter().zip(weights).zip(&is_outlier).filter(|(_, outlier)| !**outlier) {
                value += x.value * w;
                magnitude += (x.value * w).abs();
                error += x.error * w.abs();
            }
            let own = match () {
                // The sum is exact; then a conversion and two scales. Here it is one of F64, which are not.
                _ if one_sum => 4.0 * U * value.abs() + x.len() as f64 * f64::EPSILON * magnitude,
                // Each group has a scale, and groups are added as floats.
                _ if grouped || spec.weights.is_group_wise() => (4.0 * U + summing(x.len())) * magnitude,
                // Integers become floats by a product and a sum of their own.
                _ if spec.weights.is_integer() => (2.0 * U + summing(x.len())) * magnitude,
                _ => summing(x.len()) * magnitude,
            };
            let y = Bound { value, error: error + own };
            if kept.is_empty() {
                return y;
            }
            let weights = &layer.outliers[channel * kept.len()..][..kept.len()];
            let terms =
                kept.iter().zip(weights).map(|(x, w)| Bound { value: x.value * w, error: x.error * w.abs() });
            y.plus(Bound::total(&terms.collect::<Vec<_>>()))
        });
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
        epilogue(&products.collect::<Vec<_>>(), &after)
    };
    rows.all.iter().zip(&rows.kept).map(of_row).collect()
}

/// A network over an expert's rows, as its first product sees them.
fn network(spec: &FeedForward, network: &Network, rows: &Rows) -> Vec<Vec<Bound>> {
    let mut between = products(&spec.gate_up, &network.gate_up, rows);
    if let Some(function) = spec.function {
        // What INT8 per token is made of is not rounded before.
        let output = if is_sent_as_int8(&spec.down) { DType::F32 } else { spec.gate_up.output };
        for row in &mut between {
            let y = activation::rows(function, row, spec.down.in_features);
            *row = y.into_iter().map(|y| y.rounded(output)).collect();
        }
    }
    products(&spec.down, &network.down, &seen(&spec.down, &network.down, &between))
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

/// The layer over `x`, `[tokens, hidden]`; `slots` are expert and weight of each slot, `[tokens, top_k]`.
pub fn layer(
    spec: &ExpertsSpec,
    weights: &Weights,
    x: &[f64],
    slots: &[(i32, f64)],
    residual: Option<&[f64]>,
) -> Vec<Bound> {
    let hidden = spec.expert.hidden();
    let exact: Vec<Vec<Bound>> =
        x.chunks_exact(hidden).map(|row| row.iter().copied().map(Bound::exact).collect()).collect();
    let mut results: Vec<Option<Vec<Bound>>> = vec![None; slots.len()];
    let on_input = spec.router_weight == RouterWeightOn::Input;
    for (expert, weights) in weights.experts.iter().enumerate() {
        let id = (spec.local.first + expert) as i64;
        let mine: Vec<usize> = (0..slots.len()).filter(|&place| i64::from(slots[place].0) == id).collect();
        if mine.is_empty() {
            continue;
        }
        let (gate_up, layer) = (&spec.expert.gate_up, &weights.gate_up);
        let weigh = |rows: &mut [Vec<Bound>]| {
            for (&place, row) in mine.iter().zip(rows).filter(|_| on_input) {
                let weight = Bound::exact(slots[place].1);
                row.iter_mut().for_each(|x| *x = x.times(weight).rounded(spec.dtype));
            }
        };
        let mut rows: Vec<Vec<Bound>> = mine.iter().map(|place| exact[place / spec.top_k].clone()).collect();
        let rows = if is_sent_as_int8(gate_up) {
            let mut sent = seen(gate_up, layer, &rows);
            weigh(&mut sent.all);
            sent
        } else {
            weigh(&mut rows);
            seen(gate_up, layer, &rows)
        };
        for (place, row) in mine.iter().zip(network(&spec.expert, weights, &rows)) {
            results[*place] = Some(row);
        }
    }
    let shared = match (&spec.shared, &weights.shared) {
        (Some(shared), Some(weights)) if !exact.is_empty() => {
            network(shared, weights, &seen(&shared.gate_up, &weights.gate_up, &exact))
        }
        _ => Vec::new(),
    };
    let mut out = Vec::new();
    for (token, x) in x.chunks_exact(hidden).enumerate() {
        let slots = (token * spec.top_k..(token + 1) * spec.top_k)
            .map(|place| (results[place].clone(), (!on_input).then_some(slots[place].1)));
        let mut added = Vec::new();
        if let Some(row) = shared.get(token) {
            let mut row = row.clone();
            if let Some(gate) = &weights.shared_gate {
                let share = Bound::sum(x.iter().zip(gate).map(|(x, gate)| x * gate)).sigmoid();
                row.iter_mut().for_each(|y| *y = y.times(share).rounded(spec.dtype));
            }
            added.push(row);
        }
        if let Some(residual) = residual {
            added.push(residual[token * hidden..][..hidden].iter().copied().map(Bound::exact).collect());
        }
        out.extend(combined(hidden, slots, &added).into_iter().map(|y| y.rounded(spec.dtype)));
    }
    out
}
