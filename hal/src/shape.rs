//! Shapes: up to [`MAX_RANK`] dimensions, outermost first.

use crate::{Error, Result};
use std::fmt;

/// The largest number of dimensions a tensor has.
pub const MAX_RANK: usize = 4;

/// The sizes of a tensor's dimensions, outermost first.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    dims: [usize; MAX_RANK],
    rank: usize,
}

impl Shape {
    /// A shape of these dimensions.
    ///
    /// # Errors
    /// More than [`MAX_RANK`] dimensions, or more than 2^63 elements.
    pub fn new(dims: &[usize]) -> Result<Self> {
        if dims.len() > MAX_RANK {
            return Err(Error::Limit {
                operator: "shape",
                argument: "rank",
                got: dims.len() as u64,
                limit: MAX_RANK as u64,
            });
        }
        // The product of the non-zero sizes bounds every stride, also where the tensor itself is empty.
        let elements = dims
            .iter()
            .filter(|&&dim| dim != 0)
            .try_fold(1u64, |product, &dim| product.checked_mul(dim as u64))
            .filter(|&product| product <= i64::MAX as u64);
        if elements.is_none() {
            return Err(Error::Limit {
                operator: "shape",
                argument: "elements",
                got: u64::MAX,
                limit: i64::MAX as u64,
            });
        }
        let mut shape = Shape { dims: [1; MAX_RANK], rank: dims.len() };
        shape.dims[..dims.len()].copy_from_slice(dims);
        Ok(shape)
    }

    /// The sizes, outermost first.
    pub fn dims(&self) -> &[usize] {
        &self.dims[..self.rank]
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of elements.
    pub fn elements(&self) -> usize {
        self.dims().iter().product()
    }

    /// Strides, in elements, of the dense row-major layout.
    pub(crate) fn dense_strides(&self) -> [usize; MAX_RANK] {
        let mut strides = [1; MAX_RANK];
        let mut stride = 1usize;
        for axis in (0..self.rank).rev() {
            strides[axis] = stride;
            stride = stride.saturating_mul(self.dims[axis].max(1));
        }
        strides
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.dims().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_overflow_are_refused() {
        assert!(Shape::new(&[1 << 31, 1 << 31, 2]).is_err());
        assert!(Shape::new(&[0, usize::MAX, 2]).is_err(), "empty, but its strides would overflow");
        assert!(Shape::new(&[1; MAX_RANK + 1]).is_err());
    }

    #[test]
    fn a_shape_without_dimensions_is_a_scalar() {
        let scalar = Shape::new(&[]).unwrap();
        assert_eq!((scalar.rank(), scalar.elements()), (0, 1));
    }

    #[test]
    fn strides_are_row_major() {
        let shape = Shape::new(&[2, 3, 5]).unwrap();
        assert_eq!(&shape.dense_strides()[..3], &[15, 5, 1]);
    }
}
