//! Where the rows of a tensor lie.

use crate::device::Wgpu;
use halite_hal::Tensor;

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
    pub(crate) fn of(tensor: &Tensor<Wgpu>) -> Self {
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
