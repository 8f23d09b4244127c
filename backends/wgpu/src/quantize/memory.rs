//! Rows in memory to integers, in as many dispatches as the specification needs: blocks are rotated before, and one scale of
//! all rows is found before.

use super::{
    hadamard::{self, Lines},
    rows::{self, Call, PREPARE, ROWS, STEPS, TEAM},
};
use crate::{
    launch::{Access, Launch, Shader},
    operand::Operand,
    room::{self, Room},
    rows::Rows,
    stream::WgpuStream,
};
use halite_hal::{DType, Result};
use halite_kernels::quantize::{QuantizeSpec, Rotation, Smoothing};

const MEMORY_ROW: &str = include_str!("memory_row.wgsl");

static QUANTIZE: Shader = Shader { name: "quantize", source: &[TEAM, MEMORY_ROW, PREPARE, STEPS, ROWS] };
static RANGE: Shader =
    Shader { name: "quantize", source: &[TEAM, MEMORY_ROW, PREPARE, include_str!("range.wgsl")] };

/// Workgroups that find the range of all rows, at most: the last dispatch has an invocation for each of them.
const RANGES: usize = 256;

/// Scratch bytes.
pub(super) fn workspace(spec: &QuantizeSpec, rows: usize, columns: usize) -> u64 {
    let rotated = if spec.rotation == Rotation::None { 0 } else { floats(rows, columns) };
    rotated.saturating_add(if spec.finds_one_scale() { room::bytes(DType::I32, 2 * RANGES) } else { 0 })
}

/// Scratch bytes of all rows in F32.
pub(super) fn floats(rows: usize, columns: usize) -> u64 {
    room::bytes(DType::F32, rows.saturating_mul(columns))
}

/// Quantises rows of `x`.
pub(super) fn quantize(
    stream: &mut WgpuStream,
    call: &Call<'_>,
    x: Operand,
    rows: Rows,
    room: &mut Room,
) -> Result<()> {
    let Rotation::Hadamard { block } = call.spec.rotation else {
        return in_order(stream, call, x, rows, room);
    };
    let (count, columns) = (rows.count(), rows.columns);
    let turned = room.take(call.operator, DType::F32, count * columns)?;
    // Rows of more than one head come dense, from scratch memory.
    let stride = if rows.inner == 1 { rows.outer_stride } else { rows.inner_stride };
    let to = Lines { memory: turned.clone(), stride: columns };
    let from = Lines { memory: x, stride };
    hadamard::rotate(stream, from, to, [count, columns], block, call.out.smoothing)?;
    let (mut spec, mut out) = (call.spec.clone(), *call.out);
    (spec.smoothing, spec.rotation, out.smoothing) = (Smoothing::None, Rotation::None, None);
    let dense = Rows::dense([rows.outer, rows.inner, columns]);
    in_order(stream, &Call { spec: &spec, out: &out, ..*call }, turned, dense, room)
}

/// The same of columns as they stand.
fn in_order(stream: &mut WgpuStream, call: &Call<'_>, x: Operand, rows: Rows, room: &mut Room) -> Result<()> {
    let source = |shader| {
        Launch::new(shader)
            .operand("x", Access::In, x.clone())
            .size("x_outer", rows.outer_stride)
            .size("x_inner", rows.inner_stride)
    };
    let ranges =
        call.spec.finds_one_scale().then(|| room.take(call.operator, DType::I32, 2 * RANGES)).transpose()?;
    if let Some(ranges) = &ranges {
        let launch = rows::prepare(rows::teams(source(&RANGE), call.shape), call.out).operand(
            "ranges",
            Access::Words,
            ranges.clone(),
        );
        let teams = 256 / rows::lanes(rows.columns);
        let groups = rows.count().div_ceil(teams).clamp(1, RANGES);
        let aside = call.out.outliers.map_or(0, |outliers| outliers.columns.shape().elements());
        let walked = rows::rows_walked(rows.count().div_ceil(groups), rows.columns, aside);
        stream.launch(launch.rounds(walked), [groups, 1, 1])?;
    }
    rows::integers(stream, source(&QUANTIZE), call, ranges)
}
