//! Where the rows of a tensor lie.

use halite_hal::Tensor;

use crate::device::Cuda;

pub(crate) use halite_kernels::Rows;

/// Whether rows begin at multiples of 16 bytes and have whole vectors of 16 bytes: the first element's address, and every
/// stride and width that leads from it.
pub(crate) fn in_vectors(tensor: &Tensor<Cuda>, distances: &[usize]) -> bool {
    let address = tensor.buffer().address() + tensor.offset();
    let size = tensor.dtype().size();
    address.is_multiple_of(16) && distances.iter().all(|distance| (distance * size).is_multiple_of(16))
}
