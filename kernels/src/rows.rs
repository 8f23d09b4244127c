//! Where the rows of a tensor lie, as kernels are told.

use halite_hal::{Device, Tensor};

/// A tensor of up to 3 dimensions as `[outer, inner, columns]`, columns contiguous; strides in elements. Dimensions that there
/// are not are of one, the outer one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rows {
    /// The first of two or three dimensions.
    pub outer: usize,
    /// The second of three dimensions.
    pub inner: usize,
    /// The last dimension.
    pub columns: usize,
    /// Elements from one outer index to the next.
    pub outer_stride: usize,
    /// Elements from one inner index to the next.
    pub inner_stride: usize,
}

impl Rows {
    /// Of a tensor. One of no dimensions, or of more than three, is one row of all its elements: dense, if it is to be read so.
    pub fn of<D: Device>(tensor: &Tensor<D>) -> Self {
        Rows::with(tensor.dims(), tensor.strides(), tensor.shape().elements())
    }

    /// Of `[outer, inner, columns]` without gaps.
    pub fn dense([outer, inner, columns]: [usize; 3]) -> Self {
        Rows { outer, inner, columns, outer_stride: inner * columns, inner_stride: columns }
    }

    fn with(dims: &[usize], strides: &[usize], elements: usize) -> Self {
        let (outer, inner, columns, outer_stride, inner_stride) = match (dims, strides) {
            (&[n], _) => (1, 1, n, n, n),
            (&[m, n], &[s, _]) => (m, 1, n, s, n),
            (&[m, h, n], &[s, t, _]) => (m, h, n, s, t),
            _ => (1, 1, elements, elements, 0),
        };
        Rows { outer, inner, columns, outer_stride, inner_stride }
    }

    /// Rows in all.
    pub fn count(&self) -> usize {
        self.outer * self.inner
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_where_dimensions_and_strides_say() {
        let rows = |dims: &[usize], strides: &[usize]| {
            let Rows { outer, inner, columns, outer_stride, inner_stride } = Rows::with(dims, strides, 5);
            ([outer, inner, columns], [outer_stride, inner_stride])
        };
        assert_eq!(rows(&[7], &[1]), ([1, 1, 7], [7, 7]));
        assert_eq!(rows(&[3, 7], &[9, 1]), ([3, 1, 7], [9, 7]));
        assert_eq!(rows(&[2, 3, 7], &[50, 9, 1]), ([2, 3, 7], [50, 9]));
        assert_eq!(rows(&[], &[]), ([1, 1, 5], [5, 0]));
        assert_eq!(rows(&[1, 1, 1, 5], &[5, 5, 5, 1]), ([1, 1, 5], [5, 0]));
        let dense = Rows::dense([2, 3, 7]);
        assert_eq!((dense, dense.count()), (Rows::with(&[2, 3, 7], &[21, 7, 1], 42), 6));
    }
}
