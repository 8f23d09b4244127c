//! Quantisation of rows to INT8 with one scale a row (per token), symmetric, round to nearest even.
//!
//! For a row `x`: `scale = max(max|x| / 127, 2^-126)`, `q = clamp(round_ties_even(x · (1 / scale)), -127, 127)`. All of
//! it is F32 arithmetic in this order, so that every backend with IEEE division gives the same bits. A row of zeros
//! gives zeros and the smallest normal scale; no row with finite elements gives an infinity. A row that holds a NaN
//! or an infinity gives zeros with a NaN scale: it stays visible in every product and touches no other row.

use crate::{Checked, Support, check::Check};
use halite_hal::{DType, Device, Result, Tensor};

const CHECK: Check = Check("quantize");

/// From which type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct QuantizeSpec {
    /// Type of the input.
    pub input: DType,
}

impl QuantizeSpec {
    /// From `input` to INT8 per token.
    pub fn new(input: DType) -> Self {
        QuantizeSpec { input }
    }
}

/// One call.
#[derive(Clone, Debug)]
pub struct QuantizeArgs<'a, D: Device> {
    /// What to compute.
    pub spec: &'a QuantizeSpec,
    /// `[rows, columns]`.
    pub x: &'a Tensor<D>,
    /// I8 `[rows, columns]`.
    pub q: &'a Tensor<D>,
    /// F32 `[rows]`.
    pub scales: &'a Tensor<D>,
}

impl<D: Device> QuantizeArgs<'_, D> {
    /// Checks shapes and types.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument.
    pub fn check(self) -> Result<Checked<Self>> {
        let rows = CHECK.rows("x", self.x, 2)?;
        CHECK.tensor("x", self.x, self.spec.input, &[rows, self.x.dims()[1]])?;
        CHECK.tensor("q", self.q, DType::I8, self.x.dims())?;
        CHECK.tensor("scales", self.scales, DType::F32, &[rows])?;
        CHECK.disjoint("q", self.q, &[("x", Some(self.x)), ("scales", Some(self.scales))])?;
        CHECK.disjoint("scales", self.scales, &[("x", Some(self.x))])?;
        Ok(Checked::new(self))
    }
}

/// The family's trait.
pub trait Quantize: Device {
    /// Whether and how the backend runs `spec`.
    fn quantize_supports(&self, spec: &QuantizeSpec) -> Support;

    /// Runs it.
    ///
    /// # Errors
    /// An unsupported spec, or the device's.
    fn quantize(&self, stream: &mut Self::Stream, args: Checked<QuantizeArgs<'_, Self>>) -> Result<()>;
}
