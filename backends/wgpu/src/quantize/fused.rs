//! Rows that another operator computes, to integers: in its own dispatch, or by way of floats in scratch memory.

use super::{
    memory,
    rows::{self, Call},
};
use crate::{bindings::MAX_OPERANDS, operand::Operand, rows::Rows, stream::WgpuStream};
use halite_hal::{DType, Result};
use halite_kernels::{
    Support,
    quantize::{QuantizeSpec, Rotation},
};

/// Whether one dispatch does it, of an operator whose rows are made of so many operands.
pub(crate) fn in_one(spec: &QuantizeSpec, operands: usize) -> bool {
    spec.rotation == Rotation::None && operands + rows::operands(spec) <= MAX_OPERANDS
}

/// Whether an operator can quantise its result by `spec`, whose check has passed.
pub(crate) fn fused_supports(own: Support, spec: &QuantizeSpec, operands: usize) -> Support {
    match own {
        Support::Native if spec.input != DType::F32 => {
            Support::No(format!("{}: F32 results are quantised", spec.input))
        }
        Support::Native if !in_one(spec, operands) => {
            Support::Composed("the float result, what it is rotated to, and its quantisation")
        }
        own => own,
    }
}

/// Scratch bytes of an operator that quantises.
pub(crate) fn fused_workspace(spec: &QuantizeSpec, operands: usize, max_rows: usize, columns: usize) -> u64 {
    if in_one(spec, operands) {
        return 0;
    }
    memory::floats(max_rows, columns).saturating_add(memory::workspace(spec, max_rows, columns))
}

/// Quantises what `write` writes in F32, to memory with these elements from an outer and from an inner row to the next.
pub(crate) fn by_floats(
    stream: &mut WgpuStream,
    call: &Call<'_>,
    write: impl FnOnce(&mut WgpuStream, Operand, [usize; 2]) -> Result<()>,
) -> Result<()> {
    let [outer, inner, columns] = call.shape;
    let count = outer * inner;
    let bytes = memory::floats(count, columns).saturating_add(memory::workspace(call.spec, count, columns));
    let mut room = stream.scratch(call.operator, bytes)?;
    let floats = room.take(call.operator, DType::F32, count * columns)?;
    let [outer_stride, inner_stride] = [inner * columns, columns];
    write(stream, floats.clone(), [outer_stride, inner_stride])?;
    let rows = Rows { outer, inner, columns, outer_stride, inner_stride };
    memory::quantize(stream, call, floats, rows, &mut room)
}
