//! One call.

use super::{CHECK, QuantizeOut, QuantizeSpec};
use crate::Checked;
use halite_hal::{Device, Result, Tensor};

/// One call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QuantizeArgs<'a, D: Device> {
    /// What to compute.
    pub spec: &'a QuantizeSpec,
    /// `[rows, columns]`.
    pub x: &'a Tensor<D>,
    /// Where the result goes, and what is read on the way.
    pub out: QuantizeOut<'a, D>,
}

impl<'a, D: Device> QuantizeArgs<'a, D> {
    /// Without zero points, factors and outliers.
    pub fn new(spec: &'a QuantizeSpec, x: &'a Tensor<D>, q: &'a Tensor<D>, scales: &'a Tensor<D>) -> Self {
        QuantizeArgs { spec, x, out: QuantizeOut::new(q, scales) }
    }

    /// Into what stands together already.
    pub fn with_out(spec: &'a QuantizeSpec, x: &'a Tensor<D>, out: QuantizeOut<'a, D>) -> Self {
        QuantizeArgs { spec, x, out }
    }

    /// With zero points.
    pub fn with_zero_points(mut self, zero_points: &'a Tensor<D>) -> Self {
        self.out = self.out.with_zero_points(zero_points);
        self
    }

    /// With what columns are divided by.
    pub fn with_smoothing(mut self, factors: &'a Tensor<D>) -> Self {
        self.out = self.out.with_smoothing(factors);
        self
    }

    /// With columns kept in float, and where they go.
    pub fn with_outliers(mut self, columns: &'a Tensor<D>, values: &'a Tensor<D>) -> Self {
        self.out = self.out.with_outliers(columns, values);
        self
    }

    /// Checks shapes and types, and the specification.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument.
    pub fn check(self) -> Result<Checked<Self>> {
        self.spec.check()?;
        let rows = CHECK.rows("x", self.x, 2)?;
        let columns = self.x.dims()[1];
        CHECK.tensor("x", self.x, self.spec.input, &[rows, columns])?;
        self.out.check(CHECK, self.spec, self.x.dims(), &[("x", Some(self.x))])?;
        Ok(Checked::new(self))
    }
}
