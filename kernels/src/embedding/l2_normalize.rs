//! Rows of length 1.

use crate::{Checked, check::Check};
use halite_hal::{DType, Device, Result, Tensor};

const CHECK: Check = Check("l2_normalize");

/// The least `eps`, and the usual one: beside its square, squares below F32's normal range do not count, in rows of up to
/// four million columns.
pub const MIN_EPS: f32 = 1e-12;

/// How rows are normalised, over which type.
///
/// `y = x / max(√(Σ x²), eps)`, so a row of zeros stays zeros. Lengths whose squares leave F32 are right too. A NaN makes
/// its row NaN; an infinity becomes NaN, and what is finite beside it 0.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct L2NormalizeSpec {
    /// The least length that a row is divided by: finite, [`MIN_EPS`] or more.
    pub eps: f32,
    /// Type of input and output.
    pub dtype: DType,
}

impl L2NormalizeSpec {
    /// Over F32.
    pub fn new(eps: f32) -> Self {
        L2NormalizeSpec { eps, dtype: DType::F32 }
    }

    /// Another type of input and output.
    pub fn with_dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }
}

/// One call.
#[derive(Clone, Debug)]
pub struct L2NormalizeArgs<'a, D: Device> {
    /// What to compute.
    pub spec: &'a L2NormalizeSpec,
    /// `[rows, columns]`.
    pub x: &'a Tensor<D>,
    /// `[rows, columns]`, apart from `x`.
    pub out: &'a Tensor<D>,
}

impl<D: Device> L2NormalizeArgs<'_, D> {
    /// Checks shapes, types and `eps`.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument.
    pub fn check(self) -> Result<Checked<Self>> {
        let eps = self.spec.eps;
        let usable = eps.is_finite() && eps >= MIN_EPS;
        CHECK.that(usable, "eps", format!("a finite number, {MIN_EPS:e} or more"), eps)?;
        CHECK.rows("x", self.x, 2)?;
        CHECK.tensor("x", self.x, self.spec.dtype, self.x.dims())?;
        CHECK.tensor("out", self.out, self.spec.dtype, self.x.dims())?;
        CHECK.disjoint("out", self.out, &[("x", Some(self.x))])?;
        Ok(Checked::new(self))
    }
}
