//! Activations: functions of one element, gated linear units, and the quantisation after either fused.
//!
//! - SiLU (Elfwing et al. 2017, arXiv:1702.03118): `x / (1 + exp(-x))`.
//! - GELU (Hendrycks and Gimpel 2016, arXiv:1606.08415): `x/2 · (1 + erf(x/√2))`, its tanh approximation
//!   `x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))`, and its sigmoid approximation `x / (1 + exp(-1.702 x))`.
//! - ReLU: `max(x, 0)`; squared (So et al. 2021, arXiv:2109.08668): `max(x, 0)²`.
//! - Gated (Shazeer 2020, arXiv:2002.05202): `act(gate) · up`.
//! - Clamped SwiGLU, as gpt-oss's reference model has it: with `g = min(gate, limit)` and
//!   `u = min(max(up, -limit), limit)`, `g / (1 + exp(-alpha · g)) · (u + 1)`. The gate has no lower bound.
//!
//! NaN stays NaN, through clamps too. At minus infinity a function of one element gives its limit, 0.

use crate::{
    Checked, Support,
    check::Check,
    quantize::{QuantizeOut, QuantizeSpec},
};
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
    /// GELU by its sigmoid approximation, `x · sigmoid(1.702 x)`.
    QuickGelu,
    /// `max(x, 0)`.
    Relu,
    /// `max(x, 0)²`.
    ReluSquared,
}

/// A gated linear unit: a function of a gate and of what it gates.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Glu {
    /// `act(gate) · up`.
    Plain(Activation),
    /// Clamped SwiGLU, by the formula of the [module](self).
    Clamped {
        /// Factor of the sigmoid's argument; finite.
        alpha: f32,
        /// Of the gate from above and of `up` on both sides; finite and above zero.
        limit: f32,
    },
}

impl Glu {
    /// Clamped SwiGLU with gpt-oss's constants: alpha 1.702, limit 7.
    pub const CLAMPED_SWIGLU: Glu = Glu::Clamped { alpha: 1.702, limit: 7.0 };

    /// Refuses constants that are none, on behalf of an operator.
    pub(crate) fn check(self, check: Check) -> Result<()> {
        match self {
            Glu::Plain(_) => Ok(()),
            Glu::Clamped { alpha, limit } => {
                let usable = alpha.is_finite() && limit.is_finite() && limit > 0.0;
                check.that(usable, "glu", "a finite alpha and a finite limit above zero", self)
            }
        }
    }
}

/// How the gates and what they gate share a row of twice as many elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GateLayout {
    /// All gates, then all ups: column `c` has its gate at `c`, its up at `columns + c`.
    Split,
    /// In pairs: column `c` has its gate at `2c`, its up at `2c + 1`.
    Interleaved,
}

/// Whether a row is taken whole, or as gates and what they gate.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Function {
    /// `out = act(x)`; `x` is as wide as `out`.
    Plain(Activation),
    /// `out = glu(gate, up)`; `x` is twice as wide as `out`.
    Gated {
        /// The function.
        glu: Glu,
        /// Where gates and ups lie in `x`.
        layout: GateLayout,
    },
}

/// Which activation, over which type.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ActivationSpec {
    /// The function.
    pub function: Function,
    /// Type of input and float output.
    pub dtype: DType,
}

impl ActivationSpec {
    /// Any function over F32.
    pub fn of(function: Function) -> Self {
        ActivationSpec { function, dtype: DType::F32 }
    }

    /// A plain activation over F32.
    pub fn new(activation: Activation) -> Self {
        ActivationSpec::of(Function::Plain(activation))
    }

    /// A gated linear unit over F32.
    pub fn glu(glu: Glu, layout: GateLayout) -> Self {
        ActivationSpec::of(Function::Gated { glu, layout })
    }

    /// Another type of input and float output.
    pub fn with_dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }
}

/// Where the result goes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ActivationOut<'a, D: Device> {
    /// `[rows, columns]` of the spec's type.
    Float(&'a Tensor<D>),
    /// Quantised: the bits of [`quantize`](crate::quantize) after an activation with F32 results, in every format whose
    /// scales are static or a row's own.
    Quantized {
        /// Which quantisation; from F32, whatever the activation's type is.
        spec: &'a QuantizeSpec,
        /// Where it goes.
        out: QuantizeOut<'a, D>,
    },
}

/// One call: `out[r, c] = function(x)[r, c]`, computed in F32 and rounded once.
#[derive(Clone, Debug)]
pub struct ActivationArgs<'a, D: Device> {
    /// What to compute.
    pub spec: &'a ActivationSpec,
    /// `[rows, columns]`, or `[rows, 2 · columns]` where gated.
    pub x: &'a Tensor<D>,
    /// Where the result goes, apart from `x`.
    pub out: ActivationOut<'a, D>,
}

impl<D: Device> ActivationArgs<'_, D> {
    /// Checks shapes, types and constants.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument.
    pub fn check(self) -> Result<Checked<Self>> {
        let (name, out) = match &self.out {
            ActivationOut::Float(out) => ("out", *out),
            ActivationOut::Quantized { out, .. } => ("q", out.q),
        };
        let rows = CHECK.rows(name, out, 2)?;
        let columns = out.dims()[1];
        let width = match self.spec.function {
            Function::Plain(_) => Some(columns),
            Function::Gated { glu, .. } => {
                glu.check(CHECK)?;
                columns.checked_mul(2)
            }
        };
        let width =
            width.ok_or_else(|| CHECK.wrong(name, "a width that can be doubled", columns.to_string()))?;
        CHECK.tensor("x", self.x, self.spec.dtype, &[rows, width])?;
        let x = [("x", Some(self.x))];
        match &self.out {
            ActivationOut::Float(out) => {
                CHECK.tensor("out", out, self.spec.dtype, &[rows, columns])?;
                CHECK.disjoint("out", out, &x)?;
            }
            ActivationOut::Quantized { spec, out } => out.check_fused(CHECK, spec, &[rows, columns], &x)?,
        }
        Ok(Checked::new(self))
    }
}

/// The family's trait.
pub trait ActivationOps: Device {
    /// Whether and how the backend runs `spec`.
    fn activation_supports(&self, spec: &ActivationSpec) -> Support;

    /// Whether and how the backend quantises the result of `spec` in the same pass.
    fn activation_quantize_supports(&self, spec: &ActivationSpec, quantize: &QuantizeSpec) -> Support;

    /// Scratch bytes of a call that quantises up to `max_rows` rows of `columns` results, exact, or a bound where a vendor
    /// decides. Float results need none.
    fn activation_quantize_workspace(
        &self,
        spec: &ActivationSpec,
        quantize: &QuantizeSpec,
        max_rows: usize,
        columns: usize,
    ) -> u64;

    /// Runs it.
    ///
    /// # Errors
    /// An unsupported spec, or the device's.
    fn activation(&self, stream: &mut Self::Stream, args: Checked<ActivationArgs<'_, Self>>) -> Result<()>;
}
