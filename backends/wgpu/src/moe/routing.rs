//! The choice of experts, a workgroup a row.

use crate::{
    device::Wgpu,
    launch::{Access, LANES_SUM, Launch, Shader, spread},
    rows::Rows,
    stream::WgpuStream,
};
use halite_hal::{DType, Result};
use halite_kernels::{
    Support,
    moe::{GroupScore, RouterWeights, RoutingArgs, RoutingSpec, Scoring},
};

static ROUTING: Shader = Shader { name: "routing", source: &[LANES_SUM, include_str!("routing.wgsl")] };

/// Experts whose scores, keys and places workgroup memory holds.
const MAX_EXPERTS: usize = 1024;

/// The numbers that the shader knows scorings and scores of groups by.
fn codes(spec: &RoutingSpec) -> Option<(usize, usize)> {
    let scoring = match spec.scoring {
        Scoring::Softmax => 0,
        Scoring::SoftmaxOfChosen => 1,
        Scoring::Sigmoid => 2,
        _ => return None,
    };
    match spec.groups.map(|groups| groups.score) {
        None | Some(GroupScore::Best) => Some((scoring, 0)),
        Some(GroupScore::TopTwo) => Some((scoring, 1)),
        Some(_) => None,
    }
}

pub(super) fn supports(spec: &RoutingSpec) -> Support {
    match codes(spec) {
        None => Support::No(format!("{:?} of {:?} is not implemented", spec.scoring, spec.groups)),
        Some(_) if spec.experts > MAX_EXPERTS => Support::No(format!("more than {MAX_EXPERTS} experts")),
        Some(_) => Support::Native,
    }
}

pub(super) fn route(device: &Wgpu, stream: &mut WgpuStream, args: &RoutingArgs<'_, Wgpu>) -> Result<()> {
    let spec = args.spec;
    supports(spec).require("routing", device, spec)?;
    let (scoring, group_score) = codes(spec).unwrap_or_default();
    let logits = Rows::of(args.logits);
    let launch = Launch::new(&ROUTING)
        .input("logits", args.logits)
        .maybe("bias", Access::In, DType::F32, args.correction_bias)
        .output("ids", args.ids)
        .output("weights", args.weights)
        .constant("MAX_EXPERTS", MAX_EXPERTS as u32)
        .size("rows", logits.outer)
        .size("experts", spec.experts)
        .size("top_k", spec.top_k)
        .size("scoring", scoring)
        .size("groups", spec.groups.map_or(0, |groups| groups.groups))
        .size("kept", spec.groups.map_or(0, |groups| groups.kept))
        .size("group_size", spec.group_size())
        .size("group_score", group_score)
        .size("renormalized", usize::from(spec.weights == RouterWeights::Renormalized))
        .float("scale", spec.scale)
        .size("logits_stride", logits.outer_stride)
        .size("ids_stride", Rows::of(args.ids).outer_stride)
        .size("weights_stride", Rows::of(args.weights).outer_stride);
    stream.launch(launch, spread(logits.outer))
}
