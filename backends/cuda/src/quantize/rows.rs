//! Rows to integers in one launch, wherever they come from.

use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    linear::ActivationFormat,
    quantize::{QuantizeOut, QuantizeSpec, ScaleSource},
};

use crate::{device::Cuda, launch::Launch, rows::Rows, stream::CudaStream, support::unsupported};

/// Where scales come from: the numbers of rows.cuh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scales {
    /// From the row, or a group of its columns.
    Own = 0,
    /// From memory.
    Given = 1,
    /// From the range of all rows.
    Found = 2,
}

/// One call's quantisation.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    /// For errors.
    pub(crate) operator: &'static str,
    pub(crate) spec: &'a QuantizeSpec,
    pub(crate) out: &'a QuantizeOut<'a, Cuda>,
    /// Outer and inner rows, and columns.
    pub(crate) shape: [usize; 3],
}

/// How many threads share a row of so many columns: the width alone decides, so that a row's bits do not depend on others.
pub(crate) fn lanes(columns: usize) -> usize {
    if columns <= 512 { 32 } else { 256 }
}

/// A grid of a team a row.
pub(crate) fn grid([outer, inner, columns]: [usize; 3]) -> [usize; 3] {
    [outer.saturating_mul(inner).div_ceil(256 / lanes(columns)), 1, 1]
}

/// Queues a launch whose rows' source is described already. One scale of all rows is made of these ranges of some each, if
/// they are given.
pub(crate) fn integers(
    stream: &mut CudaStream,
    launch: Launch,
    call: &Call<'_>,
    ranges: Option<(&Tensor<Cuda>, usize)>,
) -> Result<()> {
    let Call { operator, spec, out, shape } = call;
    let [outer, inner, columns] = *shape;
    let (group, groups) = match spec.output {
        ActivationFormat::Int8PerGroup { group_size } => (group_size, columns.div_ceil(group_size)),
        ActivationFormat::Int8PerToken
        | ActivationFormat::AsymmetricPerToken(_)
        | ActivationFormat::Int8PerTensor
        | ActivationFormat::AsymmetricPerTensor(_) => (columns, 1),
        other => return Err(unsupported(operator, "this format", &other)),
    };
    let scales = match (spec.scales, ranges) {
        (ScaleSource::Static, _) => Scales::Given,
        (_, Some(_)) => Scales::Found,
        _ => Scales::Own,
    };
    let q = Rows::of(out.q);
    let [[scales_outer, scales_inner], [zeros_outer, zeros_inner]] = out.step_strides(spec);
    let values = out.outliers.map(|outliers| outliers.values);
    let kept = values.map(Rows::of);
    let aside = out.outliers.map(|outliers| outliers.columns);
    let launch = launch
        .tensor("q", out.q)
        .tensor("scales", out.scales)
        .maybe("zero_points", out.zero_points)
        .maybe("smoothing", out.smoothing)
        .maybe("outliers", aside)
        .maybe("outliers", values)
        .maybe("ranges", ranges.map(|(ranges, _)| ranges))
        .size("rows", outer.saturating_mul(inner))
        .size("inner", inner)
        .size("columns", columns)
        .size("group", group)
        .size("groups", groups)
        .size("q's stride", q.outer_stride)
        .size("q's stride", q.inner_stride)
        .size("scales' stride", scales_outer)
        .size("scales' stride", scales_inner)
        .size("zero points' stride", zeros_outer)
        .size("zero points' stride", zeros_inner)
        .size("outliers' stride", kept.map_or(0, |kept| kept.outer_stride))
        .size("outliers' stride", kept.map_or(0, |kept| kept.inner_stride))
        .count("outliers", aside.map_or(0, |columns| columns.shape().elements()))
        .count("ranges", ranges.map_or(0, |(_, count)| count))
        .count("lanes", lanes(columns))
        .int(scales as i32)
        .int(spec.output.has_zero_points().into())
        .int((spec.output.dtype() == DType::U8).into());
    let grid = grid(*shape);
    // One scale of no rows is written all the same.
    stream.launch(launch.grid(if scales == Scales::Found { grid.map(|blocks| blocks.max(1)) } else { grid }))
}
