//! Rows in memory to integers, in as many launches as the specification needs: blocks are rotated before, and one scale of
//! all rows is found before.

use halite_hal::{DType, Result, Tensor};
use halite_kernels::quantize::{QuantizeSpec, Rotation, Smoothing};

use super::{
    rotate,
    rows::{self, Call},
};
use crate::{
    compile::{Program, Source},
    device::Cuda,
    launch::Launch,
    room::{self, Room},
    rows::Rows,
    stream::CudaStream,
};

static SOURCE: Source = Source::new("quantize/quantize.cu", include_str!("quantize.cu"));

/// Blocks that find the range of all rows, at most.
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

fn source(entry: &'static str, dtype: DType) -> Launch {
    Launch::new("quantize", &SOURCE, entry).element("X", dtype)
}

/// Quantises rows of `x`, which lie as `rows` says.
pub(super) fn quantize(
    stream: &mut CudaStream,
    call: &Call<'_>,
    x: &Tensor<Cuda>,
    rows: Rows,
    room: &mut Room,
) -> Result<()> {
    let Rotation::Hadamard { block } = call.spec.rotation else {
        return in_order(stream, call, x, rows, room);
    };
    let (count, columns) = (rows.count(), rows.columns);
    let turned = room.tensor(call.operator, DType::F32, &[count, columns])?;
    // Rows of more than one head come dense, from scratch memory.
    let stride = if rows.inner == 1 { rows.outer_stride } else { rows.inner_stride };
    rotate::rows(stream, [x, &turned], [stride, columns], [count, columns], block, call.out.smoothing)?;
    let (mut spec, mut out) = (call.spec.clone(), *call.out);
    (spec.smoothing, spec.rotation, out.smoothing) = (Smoothing::None, Rotation::None, None);
    let dense = Rows::dense([rows.outer, rows.inner, columns]);
    in_order(stream, &Call { spec: &spec, out: &out, ..*call }, &turned, dense, room)
}

/// The same of columns as they stand.
fn in_order(
    stream: &mut CudaStream,
    call: &Call<'_>,
    x: &Tensor<Cuda>,
    rows: Rows,
    room: &mut Room,
) -> Result<()> {
    let described = |entry| {
        source(entry, x.dtype())
            .tensor("x", x)
            .size("x's stride", rows.outer_stride)
            .size("x's stride", rows.inner_stride)
    };
    if !call.spec.finds_one_scale() {
        return rows::integers(stream, described("quantize"), call, None);
    }
    let ranges = room.tensor(call.operator, DType::I32, &[2 * RANGES])?;
    let blocks = rows.count().clamp(1, RANGES);
    let aside = call.out.outliers.map(|outliers| outliers.columns);
    let launch = described("quantize_range")
        .maybe("smoothing", call.out.smoothing)
        .maybe("outliers", aside)
        .tensor("ranges", &ranges)
        .size("rows", rows.count())
        .size("inner", rows.inner)
        .size("columns", rows.columns)
        .count("outliers", aside.map_or(0, |columns| columns.shape().elements()));
    stream.launch(launch.grid([blocks, 1, 1]))?;
    rows::integers(stream, described("quantize"), call, Some((&ranges, blocks)))
}

/// Every program of rows in memory.
pub(super) fn programs() -> Vec<Program> {
    [DType::F32, DType::F16, DType::Bf16].map(|dtype| source("quantize", dtype).program()).into()
}
