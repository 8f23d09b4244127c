//! A token for each row, and the distribution that its draw follows.

use halite_hal::{Result, Tensor};
use halite_kernels::sampling::weight_bits;

use super::weights;
use crate::{
    compile::{Program, Source},
    device::Cuda,
    launch::Launch,
    rows::Rows,
    stream::CudaStream,
    table::Table,
};

static SOURCE: Source = Source::new("sampling/sampling.cu", include_str!("sampling.cu"));

fn base(entry: &'static str) -> Launch {
    Launch::new("sampling", &SOURCE, entry)
}

/// The program with both kernels.
pub(super) fn programs() -> Vec<Program> {
    vec![base("sample").program()]
}

/// A token for each row.
pub(super) fn sample(
    stream: &mut CudaStream,
    table: &Table,
    logits: &Tensor<Cuda>,
    ids: &Tensor<Cuda>,
) -> Result<()> {
    let rows = Rows::of(logits);
    let launch = base("sample")
        .tensor("logits", logits)
        .tensor("parameters", table.tensor())
        .tensor("ids", ids)
        .size("logits' stride", rows.outer_stride)
        .size("vocabulary", rows.columns)
        .int(weight_bits(rows.columns) as i32);
    stream.launch(launch.grid([rows.outer, 1, 1]))
}

/// The distribution of each row.
pub(super) fn probabilities(
    stream: &mut CudaStream,
    table: &Table,
    logits: &Tensor<Cuda>,
    out: &Tensor<Cuda>,
) -> Result<()> {
    let rows = Rows::of(logits);
    let launch = base("probabilities")
        .tensor("logits", logits)
        .tensor("parameters", table.tensor())
        .tensor("out", out)
        .size("logits' stride", rows.outer_stride)
        .size("out's stride", Rows::of(out).outer_stride)
        .size("vocabulary", rows.columns);
    stream.launch(weights(launch, rows.columns).grid([rows.outer, 1, 1]))
}
