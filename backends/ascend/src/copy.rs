//! Copies between tensors of any strides.

use halite_hal::{Result, Tensor};

use crate::{device::Ascend, stream::AscendStream};

/// Copies the elements of `from` to `to`, which has its type and shape and lies apart from it.
pub(crate) fn elements(stream: &mut AscendStream, from: &Tensor<Ascend>, to: &Tensor<Ascend>) -> Result<()> {
    let count = from.shape().elements();
    if from.is_dense() && to.is_dense() {
        let bytes = (count * from.dtype().size()) as u64;
        return stream.copy_bytes((to.buffer(), to.offset()), (from.buffer(), from.offset()), bytes);
    }
    // CANN refuses empty tensors.
    if count == 0 {
        return Ok(());
    }
    stream.run("copy", &[("from", from), ("to", to)], |cann| cann.inplace_copy(to, from))
}
