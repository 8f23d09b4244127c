//! Bytes from one place to another, whatever their alignment and strides: what copies of whole words cannot do.

use crate::{
    device::Wgpu,
    launch::{Access, Launch, Shader, spread},
    memory::WgpuBuffer,
    operand::Operand,
    stream::WgpuStream,
};
use halite_hal::{DType, Result, Storage, Tensor};

static COPY: Shader = Shader { name: "copy", source: &[include_str!("copy.wgsl")] };

/// Rows of bytes `[a, b, c, row]`, and the bytes between them along each of the outer dimensions.
pub(crate) struct Rows {
    pub(crate) dims: [usize; 3],
    pub(crate) row: usize,
    pub(crate) from: [usize; 3],
    pub(crate) to: [usize; 3],
}

/// Copies all of `from` to `to`, of the same length.
pub(crate) fn bytes(stream: &mut WgpuStream, from: Operand, to: Operand) -> Result<()> {
    let row = from.len().min(to.len()) as usize;
    rows(stream, from, to, Rows { dims: [1; 3], row, from: [0; 3], to: [0; 3] })
}

/// Copies a tensor of any strides to the beginning of `to`, dense.
pub(crate) fn to_dense(stream: &mut WgpuStream, from: &Tensor<Wgpu>, to: &WgpuBuffer) -> Result<()> {
    let size = from.dtype().size();
    let (dims, strides) = (from.dims(), from.strides());
    let row = dims.last().copied().unwrap_or(1) * size;
    // Outer dimensions, the last of three first; those that there are not have one entry.
    let mut outer = Rows { dims: [1; 3], row, from: [0; 3], to: [0; 3] };
    let mut dense = row;
    for (place, axis) in (0..dims.len().saturating_sub(1)).rev().enumerate() {
        let place = 2 - place;
        outer.dims[place] = dims[axis];
        outer.from[place] = strides[axis] * size;
        outer.to[place] = dense;
        dense *= dims[axis];
    }
    let to = Operand::bytes(to, 0..to.len(), DType::U8);
    rows(stream, Operand::tensor(from), to, outer)
}

/// Copies rows of bytes.
pub(crate) fn rows(stream: &mut WgpuStream, from: Operand, to: Operand, rows: Rows) -> Result<()> {
    let Rows { dims: [a, b, c], row, from: from_strides, to: to_strides } = rows;
    if a * b * c * row == 0 {
        return Ok(());
    }
    // One word more than the row has, since it may begin within one.
    let words = row.div_ceil(4) + 1;
    let count = a * b * c;
    let launch = Launch::new(&COPY)
        .operand("source", Access::In, from.with_type(DType::U8))
        .operand("out", Access::Out, to.with_type(DType::U8))
        .size("rows", count)
        .size("words", words)
        .size("row", row)
        .size("b", b)
        .size("c", c)
        .size("source_a", from_strides[0])
        .size("source_b", from_strides[1])
        .size("source_c", from_strides[2])
        .size("out_a", to_strides[0])
        .size("out_b", to_strides[1])
        .size("out_c", to_strides[2]);
    stream.launch(launch, spread((count * words).div_ceil(64)))
}
