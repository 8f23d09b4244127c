//! Mixture of experts: a token alone against the token in a batch.

use super::rows::{ROWS, same_rows};
use crate::{
    case::{Fault, Shown, Verdict},
    judge::same_bits,
    moe::{
        experts::Packed,
        formats::{ACTIVATIONS, is_per_tensor},
        layers::{FORMATS, gated},
        routing::SCORINGS,
    },
    poison::{Guarded, Layout},
    random::Rng,
};
use halite_kernels::{
    Backend, DType, Stream, Tensor,
    activation::{Activation, GateLayout, Glu},
    moe::{
        ExpertsArgs, ExpertsSpec, FeedForward, GroupScore, LocalExperts, RoutingArgs, RoutingSpec,
        SharedWeights,
    },
    quantize::ScaleSource,
};
use std::ops::Range;

pub(super) fn bodies<B: Backend>() -> Vec<Shown<B>> {
    vec![("routing", routing), ("experts, in any batch", experts), ("experts, in any order", any_order)]
}

fn routers() -> impl Iterator<Item = RoutingSpec> {
    SCORINGS.into_iter().flat_map(|scoring| {
        let spec = RoutingSpec::new(60, 5, scoring).renormalized().with_scale(1.5);
        [spec.clone(), spec.with_groups(6, 3, GroupScore::TopTwo)]
    })
}

/// Ids and weights of some rows, row by row.
fn route<B: Backend>(device: &B, spec: &RoutingSpec, rows: Range<usize>) -> Result<Vec<u8>, Fault> {
    let stream = &mut device.stream()?;
    let mut rng = Rng::new(4);
    let logits = Tensor::<B>::from_slice(stream, &rng.aways(ROWS * spec.experts), &[ROWS, spec.experts])?;
    let bias = Tensor::<B>::from_slice(stream, &rng.aways(spec.experts), &[spec.experts])?;
    let dims = [rows.len(), spec.top_k];
    let ids = Guarded::<B>::output(stream, DType::I32, &dims, Layout::Dense)?;
    let weights = Guarded::<B>::output(stream, DType::F32, &dims, Layout::Dense)?;
    stream.reserve(device.routing_workspace(spec, rows.len()))?;
    let args = RoutingArgs::<B> {
        spec,
        logits: &logits.narrow(0, rows)?,
        correction_bias: Some(&bias),
        ids: &ids.view,
        weights: &weights.view,
    };
    device.route(stream, args.check()?)?;
    let (ids, weights) = (ids.read_bytes(stream)?, weights.read_bytes(stream)?);
    let row = 4 * spec.top_k;
    Ok(ids.chunks(row).zip(weights.chunks(row)).flat_map(|(ids, weights)| [ids, weights].concat()).collect())
}

fn routing<B: Backend>(device: &B) -> Verdict {
    for spec in routers() {
        same_rows(&format!("{spec:?}"), 8 * spec.top_k, |rows| route(device, &spec, rows))?;
    }
    Ok(())
}

/// Results for comparisons between devices.
pub(super) fn prints<B: Backend>(device: &B) -> Result<Vec<(String, Vec<u8>)>, Fault> {
    let mut prints = Vec::new();
    for spec in routers() {
        for rows in [0..1, 0..5, 0..ROWS] {
            prints.push((format!("{spec:?}, rows {rows:?}"), route(device, &spec, rows)?));
        }
    }
    for spec in layers() {
        for tokens in [0..1, 0..5, 0..ROWS] {
            let tokens: Vec<usize> = tokens.collect();
            prints.push((format!("{spec:?}, {} tokens", tokens.len()), run(device, &spec, &tokens)?));
        }
    }
    Ok(prints)
}

const EXPERTS: usize = 6;
const HIDDEN: usize = 40;

/// A layer of each format, with everything that it can have.
fn layers() -> Vec<ExpertsSpec> {
    let layer = |network: FeedForward, shared: FeedForward| {
        ExpertsSpec::new(LocalExperts::range(1, EXPERTS - 1), 3, network).with_shared(shared)
    };
    let mut clamped = gated(2, HIDDEN, 20, Activation::Silu);
    (clamped.gate_up.gate, clamped.gate_up.out_features) = (None, 40);
    let mut layers: Vec<ExpertsSpec> = (0..FORMATS)
        .map(|format| {
            let network = gated(format, HIDDEN, 33, Activation::Silu);
            layer(network.clone(), network)
        })
        .collect();
    // Rows in every other format of integers, columns in float beside them; one scale for all rows if it is static.
    for format in ACTIVATIONS {
        let mut network = gated(2, HIDDEN, 33, Activation::Silu);
        for layer in [&mut network.gate_up, &mut network.down] {
            *layer = layer.clone().with_activation_format(format).with_outliers(3, DType::F32);
        }
        if is_per_tensor(format) {
            network = network.with_scales(ScaleSource::Static, ScaleSource::Static);
        }
        layers.push(layer(network.clone(), network));
    }
    layers.push(layer(
        clamped.with_glu(Glu::CLAMPED_SWIGLU, GateLayout::Interleaved),
        gated(0, HIDDEN, 20, Activation::GeluTanh),
    ));
    layers
}

/// The layer over tokens of the largest batch, in the given order.
fn run<B: Backend>(device: &B, spec: &ExpertsSpec, tokens: &[usize]) -> Result<Vec<u8>, Fault> {
    let stream = &mut device.stream()?;
    let mut rng = Rng::new(6);
    let local = Packed::new(device, stream, &mut rng, &spec.expert, spec.local.count, true)?;
    let shared = match &spec.shared {
        Some(shared) => Some(Packed::new(device, stream, &mut rng, shared, 1, true)?),
        None => None,
    };
    let gate = Tensor::<B>::from_slice(stream, &rng.aways(HIDDEN), &[HIDDEN])?;
    let (x, weights) = (rng.spreads(ROWS * HIDDEN), rng.aways(ROWS * spec.top_k));
    let ids: Vec<i32> = (0..ROWS * spec.top_k).map(|_| rng.below(EXPERTS) as i32).collect();
    let top_k = spec.top_k;
    let x: Vec<f32> = tokens.iter().flat_map(|&t| x[t * HIDDEN..][..HIDDEN].to_vec()).collect();
    let ids: Vec<i32> = tokens.iter().flat_map(|&t| ids[t * top_k..][..top_k].to_vec()).collect();
    let weights: Vec<f32> = tokens.iter().flat_map(|&t| weights[t * top_k..][..top_k].to_vec()).collect();
    let count = tokens.len();
    let x = Tensor::<B>::from_slice(stream, &x, &[count, HIDDEN])?;
    let ids = Tensor::<B>::from_slice(stream, &ids, &[count, top_k])?;
    let weights = Tensor::<B>::from_slice(stream, &weights, &[count, top_k])?;
    let out = Guarded::<B>::output(stream, DType::F32, &[count, HIDDEN], Layout::Dense)?;
    let plan = device.moe_plan(spec, count)?;
    let shared = shared.as_ref().map(|shared| SharedWeights::new(shared.weights()).with_gate(&gate));
    stream.reserve(device.moe_workspace(&plan, local.weights(), shared))?;
    let args = ExpertsArgs::<B> {
        plan: &plan,
        x: &x,
        ids: &ids,
        weights: &weights,
        experts: local.weights(),
        shared,
        residual: Some(&x),
        out: &out.view,
    };
    device.moe(stream, args.check()?)?;
    out.read_bytes(stream)
}

fn experts<B: Backend>(device: &B) -> Verdict {
    for spec in layers() {
        same_rows(&format!("{spec:?}"), 4 * HIDDEN, |rows| {
            run(device, &spec, &rows.collect::<Vec<usize>>())
        })?;
    }
    Ok(())
}

/// A token's neighbours may be any, in any order.
fn any_order<B: Backend>(device: &B) -> Verdict {
    for spec in layers() {
        let whole = run(device, &spec, &(0..ROWS).collect::<Vec<usize>>())?;
        let order = Rng::new(2).permutation(ROWS);
        let mixed = run(device, &spec, &order)?;
        for (&token, row) in order.iter().zip(mixed.chunks(4 * HIDDEN)) {
            same_bits(&format!("{spec:?}: token {token}"), row, &whole[token * 4 * HIDDEN..][..4 * HIDDEN])?;
        }
    }
    Ok(())
}
