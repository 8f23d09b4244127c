//! Rows to integers in one dispatch, wherever they come from.

use crate::{
    device::Wgpu,
    launch::{Access, Launch, spread},
    operand::Operand,
    rows::Rows,
    stream::WgpuStream,
    support::unsupported,
};
use halite_hal::{DType, Result};
use halite_kernels::{
    linear::ActivationFormat,
    quantize::{QuantizeOut, QuantizeSpec, ScaleSource},
};

/// Rows by teams of invocations: what stands before the source of rows.
pub(crate) const TEAM: &str = include_str!("../team.wgsl");
/// What a shader is made of that ends with integers, behind the source of its rows.
pub(crate) const PREPARE: &str = include_str!("prepare.wgsl");
pub(crate) const STEPS: &str = include_str!("steps.wgsl");
pub(crate) const ROWS: &str = include_str!("rows.wgsl");

/// Where scales come from, as the shader knows it.
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
    pub(crate) out: &'a QuantizeOut<'a, Wgpu>,
    /// Outer and inner rows, and columns.
    pub(crate) shape: [usize; 3],
}

/// Operands of [`integers`] at most, for calls by `spec`, and so what is left to the source of the rows.
pub(crate) fn operands(spec: &QuantizeSpec) -> usize {
    let own = 2 + usize::from(spec.output.has_zero_points());
    let before =
        usize::from(spec.smoothing != Default::default()) + 2 * usize::from(spec.outlier_columns > 0);
    own + before
}

/// How many invocations share a row of so many columns.
pub(crate) fn lanes(columns: usize) -> usize {
    if columns <= 256 { 32 } else { 256 }
}

/// The sizes and constants of rows in teams.
pub(crate) fn teams(launch: Launch, [outer, inner, columns]: [usize; 3]) -> Launch {
    launch
        .constant("ROW_LANES", lanes(columns) as u32)
        .size("rows", outer * inner)
        .size("inner", inner)
        .size("columns", columns)
}

/// Rounds of loops over a row's columns, where `aside` of them are set aside: each column is looked for among them.
pub(crate) fn row_rounds(columns: usize, lanes: usize, aside: usize) -> usize {
    let look = if aside > 0 { 4 * (2 + aside.ilog2() as usize) } else { 0 };
    columns.div_ceil(4 * lanes).saturating_mul(1 + look)
}

/// Rounds of a workgroup that walks so many rows.
pub(crate) fn rows_walked(rows: usize, columns: usize, aside: usize) -> usize {
    let lanes = lanes(columns);
    rows.div_ceil(256 / lanes).saturating_mul(1 + row_rounds(columns, lanes, aside))
}

/// A grid of a team a row.
pub(crate) fn grid([outer, inner, columns]: [usize; 3]) -> [usize; 3] {
    spread((outer * inner).div_ceil(256 / lanes(columns)))
}

/// What happens to rows before, for shaders with [`PREPARE`].
pub(crate) fn prepare(launch: Launch, out: &QuantizeOut<'_, Wgpu>) -> Launch {
    let columns = out.outliers.map(|outliers| outliers.columns);
    launch
        .maybe("factors", Access::In, DType::F32, out.smoothing)
        .maybe("outliers", Access::In, DType::I32, columns)
        .size("aside", columns.map_or(0, |columns| columns.shape().elements()))
}

/// Queues a dispatch whose rows' source is bound already. One scale of all rows is made of the ranges of some each, if those
/// are given.
pub(crate) fn integers(
    stream: &mut WgpuStream,
    launch: Launch,
    call: &Call<'_>,
    ranges: Option<Operand>,
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
    let grouped = matches!(spec.output, ActivationFormat::Int8PerGroup { .. });
    let scales = match (spec.scales, &ranges) {
        (ScaleSource::Static, _) => Scales::Given,
        (_, Some(_)) => Scales::Found,
        _ => Scales::Own,
    };
    let group_lanes = if grouped { (group / 4).next_power_of_two().clamp(8, 32) } else { lanes(columns) };
    let q = Rows::of(out.q);
    let [[scales_outer, scales_inner], [zeros_outer, zeros_inner]] = out.step_strides(spec);
    let values = out.outliers.map(|outliers| outliers.values);
    let kept = values.map(Rows::of);
    let launch = prepare(teams(launch, *shape), out)
        .output("q", out.q)
        .operand("scales", Access::InOut, Operand::tensor(out.scales))
        .maybe("zeros", Access::InOut, DType::I32, out.zero_points)
        .maybe("kept", Access::Out, spec.input, values)
        .optional("ranges", Access::Words, DType::I32, ranges)
        .constant("SCALES", scales as u32)
        .constant("GROUP_LANES", group_lanes as u32)
        .flag("ASYMMETRIC", spec.output.has_zero_points())
        .flag("UNSIGNED", spec.output.dtype() == DType::U8)
        .size("group", group)
        .size("groups", groups)
        .size("q_outer", q.outer_stride)
        .size("q_inner", q.inner_stride)
        .size("scales_outer", scales_outer)
        .size("scales_inner", scales_inner)
        .size("zeros_outer", zeros_outer)
        .size("zeros_inner", zeros_inner)
        .size("kept_outer", kept.map_or(0, |kept| kept.outer_stride))
        .size("kept_inner", kept.map_or(0, |kept| kept.inner_stride));
    // A team's groups, one after another: their range, what the team makes of it, and their integers; then the columns that
    // are set aside.
    let aside = out.outliers.map_or(0, |outliers| outliers.columns.shape().elements());
    let turns = groups.div_ceil(lanes(columns) / group_lanes);
    let turn = 2 * row_rounds(group, group_lanes, aside) + 10;
    let launch = launch.rounds(turns.saturating_mul(turn) + aside.div_ceil(lanes(columns)) + 32);
    let groups = grid([outer, inner, columns]);
    // One scale of no rows is written all the same.
    stream.launch(launch, if scales == Scales::Found { groups.map(|groups| groups.max(1)) } else { groups })
}
