//! Where the rows of a tensor lie.

use halite_hal::Tensor;

use crate::device::Cuda;

/// A tensor of up to 3 dimensions as `[outer, inner, columns]`, columns contiguous; strides in elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    pub(crate) outer: usize,
    pub(crate) inner: usize,
    pub(crate) columns: usize,
    pub(crate) outer_stride: usize,
    pub(crate) inner_stride: usize,
}

impl Rows {
    pub(crate) fn of(tensor: &Tensor<Cuda>) -> Self {
        let (outer, inner, columns, outer_stride, inner_stride) = match (tensor.dims(), tensor.strides()) {
            (&[n], _) => (1, 1, n, n, n),
            (&[m, n], &[s, _]) => (m, 1, n, s, n),
            (&[m, h, n], &[s, t, _]) => (m, h, n, s, t),
            _ => (1, 1, tensor.shape().elements(), tensor.shape().elements(), 0),
        };
        Rows { outer, inner, columns, outer_stride, inner_stride }
    }

    /// Rows in all.
    pub(crate) fn count(&self) -> usize {
        self.outer * self.inner
    }
}

/// Whether rows begin at multiples of 16 bytes and have whole vectors of 16 bytes: the first element's address, and every
/// stride and width that leads from it.
pub(crate) fn in_vectors(tensor: &Tensor<Cuda>, distances: &[usize]) -> bool {
    let address = tensor.buffer().address() + tensor.offset();
    let size = tensor.dtype().size();
    address.is_multiple_of(16) && distances.iter().all(|distance| (distance * size).is_multiple_of(16))
}
