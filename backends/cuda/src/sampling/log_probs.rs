//! Log-probabilities of given tokens, the highest of each row, and those of all tokens.

use halite_hal::Result;
use halite_kernels::{
    sampling::{LogProbArgs, TopLogProbs},
    top_k::{TopK, TopKArgs, TopKSpec},
};

use super::weights;
use crate::{
    compile::{Program, Source},
    device::Cuda,
    launch::Launch,
    rows::Rows,
    stream::CudaStream,
};

static SOURCE: Source = Source::new("sampling/log_probs.cu", include_str!("log_probs.cu"));

fn base() -> Launch {
    Launch::new("sampling", &SOURCE, "log_probs")
}

/// The program.
pub(super) fn programs() -> Vec<Program> {
    vec![base().program()]
}

pub(super) fn log_probs(device: &Cuda, stream: &mut CudaStream, args: &LogProbArgs<'_, Cuda>) -> Result<()> {
    let rows = Rows::of(args.logits);
    // The highest logits first, where their log-probabilities are due.
    let top = args.top.as_ref();
    let highest = top.map_or(0, |top| Rows::of(top.ids).columns);
    if let Some(TopLogProbs { ids, log_probs, .. }) = top {
        let spec = &TopKSpec::largest(highest);
        device.top_k(stream, TopKArgs { spec, x: args.logits, values: log_probs, ids }.check()?)?;
    }
    let launch = base()
        .tensor("logits", args.logits)
        .tensor("targets", args.targets)
        .tensor("out", args.out)
        .maybe("top", top.map(|top| top.log_probs))
        .maybe("all", args.all)
        .size("logits' stride", rows.outer_stride)
        .size("vocabulary", rows.columns)
        .size("highest", highest)
        .size("top's stride", top.map_or(0, |top| Rows::of(top.log_probs).outer_stride))
        .size("all's stride", args.all.map_or(0, |all| Rows::of(all).outer_stride));
    stream.launch(weights(launch, rows.columns).grid([rows.outer, 1, 1]))
}
