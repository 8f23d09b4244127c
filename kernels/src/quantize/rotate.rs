//! The rotation alone, floats to floats: where what is rotated is not quantised, or not next.

use super::{MAX_ROTATION_BLOCK, spec::check_block};
use crate::{Checked, check::Check};
use halite_hal::{DType, Device, Result, Tensor};

const CHECK: Check = Check("rotate");

/// The largest block for rows of so many columns: the largest power of two that divides them, up to
/// [`MAX_ROTATION_BLOCK`].
pub fn largest_rotation_block(columns: usize) -> usize {
    1 << columns.trailing_zeros().min(MAX_ROTATION_BLOCK.trailing_zeros())
}

/// Which rotation, over which type.
///
/// `y = x · H / √block` for each block of columns, with the Walsh-Hadamard matrix `H[i, j] = (-1)^popcount(i & j)` in its
/// natural order (Sylvester 1867), as QuaRot (Ashkboos et al. 2024, arXiv:2404.00456) rotates activations. `H · H` is
/// `block · I`, so the rotation undoes itself.
///
/// In F32 by sums and differences of halves (Fino and Algazi 1976), rounded once to the type. A block's sums come before
/// the factor: magnitudes up to the greatest F32 over `block` are safe. A NaN makes its block NaN, an infinity makes it
/// infinite, two may make NaN; other blocks see nothing of either.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct RotateSpec {
    /// Type of input and output.
    pub dtype: DType,
    /// Columns of a block: a power of two up to [`MAX_ROTATION_BLOCK`] that divides the columns. 1 changes nothing.
    pub block: usize,
}

impl RotateSpec {
    /// Blocks of so many columns, over F32.
    pub fn hadamard(block: usize) -> Self {
        RotateSpec { dtype: DType::F32, block }
    }

    /// Another type of input and output.
    pub fn with_dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }
}

/// One call. Heads that lie side by side are blocks: `[tokens, heads · head_dim]` with blocks of `head_dim`.
#[derive(Clone, Debug)]
pub struct RotateArgs<'a, D: Device> {
    /// What to compute.
    pub spec: &'a RotateSpec,
    /// `[rows, columns]`; rows may be strided.
    pub x: &'a Tensor<D>,
    /// Of `x`'s shape and type, and apart from it: nothing is rotated in place.
    pub out: &'a Tensor<D>,
}

impl<D: Device> RotateArgs<'_, D> {
    /// Checks shapes, types and the block.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument.
    pub fn check(self) -> Result<Checked<Self>> {
        let RotateSpec { dtype, block } = *self.spec;
        check_block(CHECK, "block", block)?;
        let rows = CHECK.rows("x", self.x, 2)?;
        let columns = self.x.dims()[1];
        CHECK.tensor("x", self.x, dtype, &[rows, columns])?;
        CHECK.tensor("out", self.out, dtype, &[rows, columns])?;
        let whole = columns.is_multiple_of(block);
        CHECK.that(whole, "block", format!("a block that divides {columns} columns"), block)?;
        CHECK.disjoint("out", self.out, &[("x", Some(self.x))])?;
        Ok(Checked::new(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_block_divides_the_columns() {
        for (columns, block) in [(0, 8192), (1, 1), (48, 16), (576, 64), (4096, 4096), (3 << 20, 8192)] {
            assert_eq!(largest_rotation_block(columns), block, "{columns} columns");
        }
    }
}
