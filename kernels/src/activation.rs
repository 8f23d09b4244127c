//! Activations: SiLU, GELU and their gated forms.
//!
//! - SiLU (Elfwing et al. 2017, arXiv:1702.03118): `x / (1 + exp(-x))`.
//! - GELU (Hendrycks and Gimpel 2016, arXiv:1606.08415): `x/2 · (1 + erf(x/√2))`, and its tanh approximation
//!   `x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))`.
//! - Gated (Shazeer 2020, arXiv:2002.05202): `act(gate) · up`, where a row of `x` holds the gate, then the up half.

use crate::{Checked, Support, check::Check};
use halite_hal::{DType, Device, Result, Tensor};

const CHECK: Check = Check("activation");

/// A function of one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Activation {
    /// `x · sigmoid(x)`.
    Silu,
    /// GELU by the error function.
    GeluErf,
    /// GELU by its tanh approximation.
    GeluTanh,
}

/// Whether a row is taken whole, or as a gate and what it gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Gating {
    /// `out = act(x)`; `x` is as wide as `out`.
    None,
    /// `out = act(x[.., ..columns]) · x[.., columns..]`; `x` is twice as wide as `out`.
    GateThenUp,
}

/// Which activation, over which type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ActivationSpec {
    /// The function.
    pub activation: Activation,
    /// Plain or gated.
    pub gating: Gating,
    /// Type of input and output.
    pub dtype: DType,
}

impl ActivationSpec {
    /// A plain activation over F32.
    pub fn new(activation: Activation) -> Self {
        ActivationSpec { activation, gating: Gating::None, dtype: DType::F32 }
    }

    /// The gated form.
    pub fn gated(mut self) -> Self {
        self.gating = Gating::GateThenUp;
        self
    }

    /// Another type of input and output.
    pub fn with_dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }
}

/// One call: `out[r, c] = act(x)[r, c]`.
#[derive(Clone, Debug)]
pub struct ActivationArgs<'a, D: Device> {
    /// What to compute.
    pub spec: &'a ActivationSpec,
    /// `[rows, columns]`, or `[rows, 2 · columns]` where gated.
    pub x: &'a Tensor<D>,
    /// `[rows, columns]`, apart from `x`.
    pub out: &'a Tensor<D>,
}

impl<D: Device> ActivationArgs<'_, D> {
    /// Checks shapes and types.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument.
    pub fn check(self) -> Result<Checked<Self>> {
        let rows = CHECK.rows("out", self.out, 2)?;
        let columns = self.out.dims()[1];
        let width = match self.spec.gating {
            Gating::None => Some(columns),
            Gating::GateThenUp => columns.checked_mul(2),
        };
        let width =
            width.ok_or_else(|| CHECK.wrong("out", "a width that can be doubled", columns.to_string()))?;
        CHECK.tensor("out", self.out, self.spec.dtype, &[rows, columns])?;
        CHECK.tensor("x", self.x, self.spec.dtype, &[rows, width])?;
        CHECK.disjoint("out", self.out, &[("x", Some(self.x))])?;
        Ok(Checked::new(self))
    }
}

/// The family's trait.
pub trait ActivationOps: Device {
    /// Whether and how the backend runs `spec`.
    fn activation_supports(&self, spec: &ActivationSpec) -> Support;

    /// Runs it.
    ///
    /// # Errors
    /// An unsupported spec, or the device's.
    fn activation(&self, stream: &mut Self::Stream, args: Checked<ActivationArgs<'_, Self>>) -> Result<()>;
}
