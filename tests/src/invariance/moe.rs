//! Mixture of experts: a token alone against the token in a batch.

use super::rows::{ROWS, same_rows};
use crate::{
    case::{Fault, Shown, Verdict},
    moe::routing::SCORINGS,
    poison::{Guarded, Layout},
    random::Rng,
};
use halite_kernels::{
    Backend, DType, Stream, Tensor,
    moe::{GroupScore, RoutingArgs, RoutingSpec},
};
use std::ops::Range;

pub(super) fn bodies<B: Backend>() -> Vec<Shown<B>> {
    vec![("routing", routing)]
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
    Ok(prints)
}
