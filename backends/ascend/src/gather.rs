//! The elements of a view, taken out of the bytes that it lies in.

use halite_hal::{MAX_RANK, Tensor};

use crate::device::Ascend;

/// How a view lies in its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gather {
    /// Missing dimensions are leading ones.
    dims: [usize; MAX_RANK],
    /// In bytes.
    strides: [usize; MAX_RANK],
    /// Bytes of an element.
    size: usize,
}

impl Gather {
    pub(crate) fn of(tensor: &Tensor<Ascend>) -> Self {
        Gather::new(tensor.dims(), tensor.strides(), tensor.dtype().size())
    }

    fn new(of_dims: &[usize], of_strides: &[usize], size: usize) -> Self {
        let (mut dims, mut strides) = ([1; MAX_RANK], [0; MAX_RANK]);
        let missing = MAX_RANK - of_dims.len();
        dims[missing..].copy_from_slice(of_dims);
        strides[missing..].iter_mut().zip(of_strides).for_each(|(to, stride)| *to = stride * size);
        Gather { dims, strides, size }
    }

    /// The elements in row-major order; `bytes` begin with the view's first.
    pub(crate) fn dense(&self, bytes: &[u8]) -> Vec<u8> {
        // The innermost dimension has no gaps.
        let row = self.dims[MAX_RANK - 1] * self.size;
        if row == 0 {
            return Vec::new();
        }
        let outer = &self.dims[..MAX_RANK - 1];
        let rows: usize = outer.iter().product();
        let mut dense = Vec::with_capacity(rows * row);
        for number in 0..rows {
            let (mut rest, mut at) = (number, 0);
            for (dim, stride) in outer.iter().zip(&self.strides).rev() {
                at += rest % dim * stride;
                rest /= dim;
            }
            dense.extend_from_slice(&bytes[at..][..row]);
        }
        dense
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_come_in_row_major_order() {
        let bytes: Vec<u8> = (0..60).collect();
        let gather = Gather::new(&[2, 2, 3], &[15, 5, 1], 2);
        let expected: Vec<u8> = [0, 10, 30, 40].into_iter().flat_map(|at| at..at + 6).collect();
        assert_eq!(gather.dense(&bytes[..]), expected);
        assert_eq!(Gather::new(&[3, 0], &[4, 1], 4).dense(&[]), [0u8; 0]);
    }
}
