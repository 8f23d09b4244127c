//! Normalisation of rows, with a residual before or after it and the quantisation after it fused.
//!
//! - RMS (Zhang and Sennrich 2019, arXiv:1910.07467): `y = x / √(mean(x²) + eps) · weight`.
//! - Layer (Ba et al. 2016, arXiv:1607.06450): `y = (x - mean) / √(var + eps) · weight + bias`, population variance.
//!
//! Where the spec has a `weight_offset`, `weight` above is `weight_offset + weight`: Gemma's weights are stored less 1
//! (arXiv:2403.08295). Without weights `y` is not multiplied at all (OLMo's layer norm, arXiv:2402.00838).
//!
//! Where the squares of a row's elements leave F32, or vanish beside an eps of next to nothing, they are taken of the row
//! times a power of two, and eps with them: any finite row is normalised.
//!
//! A residual is added to `x`, or to `y` as models with a norm behind each layer do (Gemma 2, arXiv:2408.00118).
//!
//! A norm per head is a norm over rows of `head_dim`: pass `[tokens, heads, head_dim]`. Weights of
//! `[heads, head_dim]` are each head's own; with them one call norms queries and keys that lie side by side.

use crate::{
    Checked, Support,
    check::Check,
    quantize::{QuantizeOut, QuantizeSpec},
};
use halite_hal::{DType, Device, Result, Tensor};

const CHECK: Check = Check("norm");

/// The formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NormKind {
    /// By the root of the mean square.
    Rms,
    /// By mean and variance.
    Layer,
}

/// Which norm, over which type.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct NormSpec {
    /// The formula.
    pub kind: NormKind,
    /// Added to the mean square or the variance; zero or more, finite.
    pub eps: f32,
    /// Added to every weight, in F32; finite. 0 leaves the weights' bits as they are.
    pub weight_offset: f32,
    /// Type of input, residual, sum and float output; weight and bias are always F32.
    pub dtype: DType,
}

impl NormSpec {
    /// RMS norm over F32.
    pub fn rms(eps: f32) -> Self {
        NormSpec { kind: NormKind::Rms, eps, weight_offset: 0.0, dtype: DType::F32 }
    }

    /// Layer norm over F32.
    pub fn layer(eps: f32) -> Self {
        NormSpec { kind: NormKind::Layer, eps, weight_offset: 0.0, dtype: DType::F32 }
    }

    /// Weights that are stored less `offset`: 1 for Gemma's.
    pub fn with_weight_offset(mut self, offset: f32) -> Self {
        self.weight_offset = offset;
        self
    }

    /// Another type of input and output.
    pub fn with_dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }
}

/// Where the result goes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum NormOut<'a, D: Device> {
    /// `[.., columns]` of the spec's type.
    Float(&'a Tensor<D>),
    /// Quantised: the bits of [`quantize`](crate::quantize) after a norm with F32 results, in every format whose scales are
    /// static or a row's own. Rows of `[tokens, heads]` have scales, zero points and outliers of those dimensions.
    Quantized {
        /// Which quantisation; from F32, whatever the norm's type is.
        spec: &'a QuantizeSpec,
        /// Where it goes.
        out: QuantizeOut<'a, D>,
    },
}

/// The residual that a norm adds on the way, and on which side of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum NormResidual<'a, D: Device> {
    /// `sum = x + residual; y = norm(sum)`: read one, keep the other.
    Before {
        /// Added to `x`; of `x`'s shape and type.
        residual: &'a Tensor<D>,
        /// Receives `x + residual`, rounded to its type, which is what is normalised; of `x`'s shape and type, apart
        /// from both.
        sum: &'a Tensor<D>,
    },
    /// `y = residual + norm(x)`, with one rounding to the output's type.
    After {
        /// Added to the norm; of `x`'s shape and type. It may be `x` itself; the output is apart from both.
        residual: &'a Tensor<D>,
    },
}

/// One call.
#[derive(Clone, Debug)]
pub struct NormArgs<'a, D: Device> {
    /// What to compute.
    pub spec: &'a NormSpec,
    /// `[rows, columns]` or `[tokens, heads, head_dim]`; outer dimensions may be strided.
    pub x: &'a Tensor<D>,
    /// The residual to add before or after.
    pub residual: Option<NormResidual<'a, D>>,
    /// F32 `[columns]`, or `[heads, columns]` for `x` of three dimensions; none multiplies nothing.
    pub weight: Option<&'a Tensor<D>>,
    /// F32, of a weight's shape; for layer norm only.
    pub bias: Option<&'a Tensor<D>>,
    /// Where the result goes.
    pub out: NormOut<'a, D>,
}

impl<D: Device> NormArgs<'_, D> {
    /// Checks shapes and types.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument.
    pub fn check(self) -> Result<Checked<Self>> {
        let dims = self.x.dims();
        CHECK.that(matches!(dims.len(), 2 | 3), "x", "2 or 3 dimensions", dims)?;
        let columns = dims[dims.len() - 1];
        CHECK.positive("columns", columns)?;
        let eps = self.spec.eps;
        CHECK.that(eps.is_finite() && eps >= 0.0, "eps", "a finite number, zero or more", eps)?;
        let offset = self.spec.weight_offset;
        CHECK.that(offset.is_finite(), "weight_offset", "a finite number", offset)?;
        CHECK.tensor("x", self.x, self.spec.dtype, dims)?;
        if let Some(weight) = self.weight {
            check_vector("weight", weight, dims)?;
        } else {
            CHECK.that(offset == 0.0, "weight_offset", "0 where there are no weights", offset)?;
        }
        if let Some(bias) = self.bias {
            CHECK.that(self.spec.kind == NormKind::Layer, "bias", "none for this kind", self.spec.kind)?;
            check_vector("bias", bias, dims)?;
        }
        let (residual, sum) = match &self.residual {
            Some(NormResidual::Before { residual, sum }) => (Some(*residual), Some(*sum)),
            Some(NormResidual::After { residual }) => (Some(*residual), None),
            None => (None, None),
        };
        if let Some(residual) = residual {
            CHECK.tensor("residual", residual, self.spec.dtype, dims)?;
        }
        if let Some(sum) = sum {
            CHECK.tensor("sum", sum, self.spec.dtype, dims)?;
        }
        let inputs =
            [("x", Some(self.x)), ("residual", residual), ("weight", self.weight), ("bias", self.bias)];
        if let Some(sum) = sum {
            CHECK.disjoint("sum", sum, &inputs)?;
        }
        match &self.out {
            NormOut::Float(out) => {
                CHECK.tensor("out", out, self.spec.dtype, dims)?;
                CHECK.disjoint("out", out, &inputs)?;
                CHECK.disjoint("out", out, &[("sum", sum)])?;
            }
            NormOut::Quantized { spec, out } => {
                let sum = ("sum", sum);
                out.check_fused(CHECK, spec, dims, &[inputs[0], inputs[1], inputs[2], inputs[3], sum])?;
                if let (_, Some(sum)) = sum {
                    CHECK.disjoint("sum", sum, &out.reads(spec))?;
                }
            }
        }
        Ok(Checked::new(self))
    }
}

/// F32 `[columns]`, or `[heads, columns]` for heads of their own.
fn check_vector<D: Device>(argument: &'static str, tensor: &Tensor<D>, dims: &[usize]) -> Result<()> {
    let own = if tensor.dims().len() == 2 && dims.len() == 3 { &dims[1..] } else { &dims[dims.len() - 1..] };
    CHECK.tensor(argument, tensor, DType::F32, own)
}

/// The family's trait.
pub trait Norm: Device {
    /// Whether and how the backend runs `spec`.
    fn norm_supports(&self, spec: &NormSpec) -> Support;

    /// Whether and how the backend quantises the result of `spec` in the same pass.
    fn norm_quantize_supports(&self, spec: &NormSpec, quantize: &QuantizeSpec) -> Support;

    /// Scratch bytes of a call that quantises up to `max_rows` rows (tokens times heads), exact, or a bound where a vendor
    /// decides. Float results need none.
    fn norm_quantize_workspace(
        &self,
        spec: &NormSpec,
        quantize: &QuantizeSpec,
        max_rows: usize,
        columns: usize,
    ) -> u64;

    /// Runs it.
    ///
    /// # Errors
    /// An unsupported spec, or the device's.
    fn norm(&self, stream: &mut Self::Stream, args: Checked<NormArgs<'_, Self>>) -> Result<()>;
}
