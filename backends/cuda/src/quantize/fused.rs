//! Rows that another operator computes, to integers: in its own launch, or by way of floats in scratch memory.

use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    Support,
    quantize::{QuantizeSpec, Rotation},
};

use super::{memory, rows::Call};
use crate::{device::Cuda, rows::Rows, stream::CudaStream};

/// Whether one launch does it.
pub(crate) fn in_one(spec: &QuantizeSpec) -> bool {
    spec.rotation == Rotation::None
}

/// Whether an operator can quantise its result by `spec`, whose check has passed.
pub(crate) fn fused_supports(own: Support, spec: &QuantizeSpec) -> Support {
    match own {
        Support::Native if spec.input != DType::F32 => {
            Support::No(format!("{}: F32 results are quantised", spec.input))
        }
        Support::Native if !in_one(spec) => {
            Support::Composed("the float result, what it is rotated to, and its quantisation")
        }
        own => own,
    }
}

/// Scratch bytes of an operator that quantises.
pub(crate) fn fused_workspace(spec: &QuantizeSpec, max_rows: usize, columns: usize) -> u64 {
    if in_one(spec) {
        return 0;
    }
    memory::floats(max_rows, columns).saturating_add(memory::workspace(spec, max_rows, columns))
}

/// Quantises what `write` writes, to a dense F32 tensor of the call's shape.
pub(crate) fn by_floats(
    stream: &mut CudaStream,
    call: &Call<'_>,
    write: impl FnOnce(&mut CudaStream, &Tensor<Cuda>) -> Result<()>,
) -> Result<()> {
    let [outer, inner, columns] = call.shape;
    let count = outer.saturating_mul(inner);
    let bytes = memory::floats(count, columns).saturating_add(memory::workspace(call.spec, count, columns));
    let mut room = stream.scratch(call.operator, bytes)?;
    let floats = room.tensor(call.operator, DType::F32, &call.shape)?;
    write(stream, &floats)?;
    memory::quantize(stream, call, &floats, Rows::of(&floats), &mut room)
}
