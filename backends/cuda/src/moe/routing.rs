//! The choice of experts, a warp a row.

use halite_hal::Result;
use halite_kernels::{
    Support,
    moe::{GroupScore, RouterWeights, RoutingArgs, RoutingSpec, Scoring},
};

use crate::{
    compile::{Program, Source},
    device::Cuda,
    launch::Launch,
    rows::Rows,
    stream::CudaStream,
};

static SOURCE: Source = Source::new("moe/routing.cu", include_str!("routing.cu"));

/// Experts whose scores, keys and places shared memory holds.
const MAX_EXPERTS: usize = 1024;
/// Threads of a block.
const LANES: u32 = 32;

/// The numbers that the kernel knows scorings and scores of groups by.
fn codes(spec: &RoutingSpec) -> Option<(i32, i32)> {
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

fn base() -> Launch {
    Launch::new("routing", &SOURCE, "route").block(LANES)
}

/// The program.
pub(super) fn programs() -> Vec<Program> {
    vec![base().program()]
}

pub(super) fn route(device: &Cuda, stream: &mut CudaStream, args: &RoutingArgs<'_, Cuda>) -> Result<()> {
    let spec = args.spec;
    supports(spec).require("routing", device, spec)?;
    let (scoring, group_score) = codes(spec).unwrap_or_default();
    let logits = Rows::of(args.logits);
    let launch = base()
        .tensor("logits", args.logits)
        .maybe("correction_bias", args.correction_bias)
        .tensor("ids", args.ids)
        .tensor("weights", args.weights)
        .size("logits' stride", logits.outer_stride)
        .size("ids' stride", Rows::of(args.ids).outer_stride)
        .size("weights' stride", Rows::of(args.weights).outer_stride)
        .count("experts", spec.experts)
        .count("top_k", spec.top_k)
        .int(scoring)
        .count("groups", spec.groups.map_or(0, |groups| groups.groups))
        .count("kept", spec.groups.map_or(0, |groups| groups.kept))
        .count("group_size", spec.group_size())
        .int(group_score)
        .int((spec.weights == RouterWeights::Renormalized).into())
        .float(spec.scale);
    stream.launch(launch.grid([logits.outer, 1, 1]))
}
