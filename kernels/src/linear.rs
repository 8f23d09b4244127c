//! Linear layers: `out = epilogue(x · Wᵀ)` with weights packed once, for any number of rows.
//!
//! W8A8 (per-token activations, per-channel weights; Xiao et al. 2022, arXiv:2211.10438, equation 2):
//! `y[t, n] = (Σ_k q_x[t, k] · q_w[n, k]) · s_w[n] · s_x[t]`, the sum exact in i32.
//!
//! The epilogue, in this order: scales, `+ bias[n]`, activation or gate, soft-cap, `+ residual[t, n]`, rounding to the
//! output type. A gated layer has `2 · out_features` weight rows, the gate's first, and gives `act(gate) · up`.

use crate::{Checked, Support, activation::Activation, check::Check};
use half::{bf16, f16};
use halite_hal::{DType, Device, Result, Tensor};

const CHECK: Check = Check("linear");

/// The largest `in_features` of an INT8 product: 131,071 · 128 · 128 is the last that stays below 2^31.
pub const MAX_INT8_IN_FEATURES: usize = 131_071;

/// How weights are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WeightFormat {
    /// F32, as given.
    F32,
    /// F16, as given.
    F16,
    /// BF16, as given.
    Bf16,
    /// INT8, symmetric, with one F32 scale an output channel.
    Int8PerChannel,
}

/// How activations come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ActivationFormat {
    /// Floating-point elements.
    Float(DType),
    /// INT8 with one F32 scale a row, as [`quantize`](crate::quantize) makes them.
    Int8PerToken,
}

/// Which linear layer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct LinearSpec {
    /// Columns of the weights: K.
    pub in_features: usize,
    /// Columns of the output: N.
    pub out_features: usize,
    /// How weights are stored.
    pub weights: WeightFormat,
    /// How activations come.
    pub activations: ActivationFormat,
    /// The gate's function where the layer is gated.
    pub gate: Option<Activation>,
    /// Type of the output. I32 gives the bare sums of an INT8 product, without scales and epilogue.
    pub output: DType,
}

impl LinearSpec {
    /// F32 activations with floating-point weights.
    pub fn float(in_features: usize, out_features: usize, weights: WeightFormat) -> Self {
        let activations = ActivationFormat::Float(DType::F32);
        LinearSpec { in_features, out_features, weights, activations, gate: None, output: DType::F32 }
    }

    /// INT8 per-token activations with INT8 per-channel weights.
    pub fn w8a8(in_features: usize, out_features: usize) -> Self {
        let (weights, activations) = (WeightFormat::Int8PerChannel, ActivationFormat::Int8PerToken);
        LinearSpec { in_features, out_features, weights, activations, gate: None, output: DType::F32 }
    }

    /// A gated layer: `out_features` columns of `gate(x · W_gateᵀ) · (x · W_upᵀ)`.
    pub fn gated(mut self, gate: Activation) -> Self {
        self.gate = Some(gate);
        self
    }

    /// Activations of another floating-point type.
    pub fn with_activations(mut self, dtype: DType) -> Self {
        self.activations = ActivationFormat::Float(dtype);
        self
    }

    /// Another output type.
    pub fn with_output(mut self, output: DType) -> Self {
        self.output = output;
        self
    }

    /// Rows of the weights: N, or 2 · N where gated.
    pub fn weight_rows(&self) -> usize {
        if self.gate.is_some() { self.out_features.saturating_mul(2) } else { self.out_features }
    }

    /// Checks that the specification makes sense: a backend calls it before it packs.
    ///
    /// # Errors
    /// Sizes of zero or beyond the exact range, or formats that do not go together.
    pub fn check(&self) -> Result<()> {
        CHECK.positive("in_features", self.in_features)?;
        CHECK.positive("out_features", self.out_features)?;
        let int8 = self.weights == WeightFormat::Int8PerChannel;
        CHECK.that(
            int8 == (self.activations == ActivationFormat::Int8PerToken),
            "activations",
            "INT8 with INT8 weights, floats with float weights",
            (self.weights, self.activations),
        )?;
        if let ActivationFormat::Float(dtype) = self.activations {
            CHECK.that(dtype.is_float(), "activations", "a floating-point type", dtype)?;
        }
        if int8 {
            CHECK.limit("in_features", self.in_features, MAX_INT8_IN_FEATURES)?;
        }
        let bare = self.output == DType::I32;
        CHECK.that(
            self.output.is_float() || (bare && int8 && self.gate.is_none()),
            "output",
            "a floating-point type, or I32 of an INT8 product without a gate",
            self.output,
        )?;
        let bytes = self.weight_rows().checked_mul(self.in_features).and_then(|n| n.checked_mul(4));
        CHECK.limit("weight bytes", bytes.unwrap_or(usize::MAX), i64::MAX as usize)
    }
}

/// Weights on the host, row-major `[weight_rows, in_features]`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum HostWeights<'a> {
    /// F32 elements.
    F32(&'a [f32]),
    /// F16 elements.
    F16(&'a [f16]),
    /// BF16 elements.
    Bf16(&'a [bf16]),
    /// INT8 elements with a scale a row.
    Int8PerChannel {
        /// `[weight_rows, in_features]`.
        q: &'a [i8],
        /// `[weight_rows]`.
        scales: &'a [f32],
    },
}

impl HostWeights<'_> {
    /// Checks format and sizes against the spec, and the spec itself.
    ///
    /// # Errors
    /// Another format, another number of elements, or scales that are not finite and positive.
    pub fn check(self, spec: &LinearSpec) -> Result<Checked<Self, &LinearSpec>> {
        spec.check()?;
        let (format, elements) = match self {
            HostWeights::F32(data) => (WeightFormat::F32, data.len()),
            HostWeights::F16(data) => (WeightFormat::F16, data.len()),
            HostWeights::Bf16(data) => (WeightFormat::Bf16, data.len()),
            HostWeights::Int8PerChannel { q, scales } => {
                let rows = spec.weight_rows();
                CHECK.that(scales.len() == rows, "scales", format!("{rows} scales"), scales.len())?;
                // Zero is left out too: a channel of zeros has a scale like any other, and 0 hides a mistake.
                let bad = scales.iter().position(|scale| !(scale.is_finite() && *scale > 0.0));
                if let Some(row) = bad {
                    let got = format!("{} in row {row}", scales[row]);
                    return Err(CHECK.wrong("scales", "finite, positive scales", got));
                }
                (WeightFormat::Int8PerChannel, q.len())
            }
        };
        CHECK.that(format == spec.weights, "weights", format!("{:?}", spec.weights), format)?;
        let expected = spec.weight_rows() * spec.in_features;
        CHECK.that(elements == expected, "weights", format!("{expected} elements"), elements)?;
        Ok(Checked::with_context(self, spec))
    }
}

/// What is multiplied with the weights.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Activations<'a, D: Device> {
    /// `[rows, in_features]` of the spec's type; rows may be strided.
    Float(&'a Tensor<D>),
    /// INT8 per token.
    Int8PerToken {
        /// I8 `[rows, in_features]`; rows may be strided.
        q: &'a Tensor<D>,
        /// F32 `[rows]`.
        scales: &'a Tensor<D>,
    },
}

/// What happens to the product; see the module's text for the order.
#[derive(Clone, Debug)]
pub struct Epilogue<'a, D: Device> {
    /// F32 `[weight_rows]`.
    pub bias: Option<&'a Tensor<D>>,
    /// Applied to each element of a layer without a gate.
    pub activation: Option<Activation>,
    /// Bounds each element of the result by `cap · tanh(y / cap)` before the residual is added (the logits of Gemma 2,
    /// arXiv:2408.00118); finite and above zero.
    pub soft_cap: Option<f32>,
    /// `[rows, out_features]` of the output's type, apart from `out`.
    pub residual: Option<&'a Tensor<D>>,
}

impl<D: Device> Default for Epilogue<'_, D> {
    fn default() -> Self {
        Epilogue { bias: None, activation: None, soft_cap: None, residual: None }
    }
}

/// One call.
#[derive(Clone, Debug)]
pub struct LinearArgs<'a, B: Linear> {
    /// What is multiplied.
    pub x: Activations<'a, B>,
    /// The weights.
    pub weights: &'a B::Packed,
    /// What happens to the product.
    pub epilogue: Epilogue<'a, B>,
    /// `[rows, out_features]` of the spec's output type; rows may be strided.
    pub out: &'a Tensor<B>,
}

impl<B: Linear> LinearArgs<'_, B> {
    /// Checks shapes, types and the epilogue.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument.
    pub fn check(self) -> Result<Checked<Self>> {
        let spec = self.weights.as_ref();
        let rows = CHECK.rows("out", self.out, 2)?;
        CHECK.tensor("out", self.out, spec.output, &[rows, spec.out_features])?;
        let (x, scales) = match (&self.x, spec.activations) {
            (Activations::Float(x), ActivationFormat::Float(dtype)) => {
                CHECK.tensor("x", x, dtype, &[rows, spec.in_features])?;
                (*x, None)
            }
            (Activations::Int8PerToken { q, scales }, ActivationFormat::Int8PerToken) => {
                CHECK.tensor("q", q, DType::I8, &[rows, spec.in_features])?;
                CHECK.tensor("scales", scales, DType::F32, &[rows])?;
                (*q, Some(*scales))
            }
            (_, format) => return Err(CHECK.wrong("x", format!("{format:?}"), "another format")),
        };
        let Epilogue { bias, activation, soft_cap, residual } = &self.epilogue;
        let bare = spec.output == DType::I32;
        let nothing = bias.is_none() && activation.is_none() && soft_cap.is_none() && residual.is_none();
        CHECK.that(!bare || nothing, "epilogue", "none for I32 output", "an epilogue")?;
        CHECK.that(
            spec.gate.is_none() || activation.is_none(),
            "activation",
            "none beside a gate",
            activation,
        )?;
        CHECK.soft_cap(*soft_cap)?;
        if let Some(bias) = bias {
            CHECK.tensor("bias", bias, DType::F32, &[spec.weight_rows()])?;
        }
        if let Some(residual) = residual {
            CHECK.tensor("residual", residual, spec.output, &[rows, spec.out_features])?;
        }
        let others = [("x", Some(x)), ("scales", scales), ("bias", *bias), ("residual", *residual)];
        CHECK.disjoint("out", self.out, &others)?;
        Ok(Checked::new(self))
    }
}

/// The family's trait.
pub trait Linear: Device {
    /// Packed weights: they remember their spec and layout, and serve every number of rows.
    type Packed: AsRef<LinearSpec> + Clone + std::fmt::Debug + Send + Sync + 'static;

    /// Whether and how the backend runs `spec`.
    fn linear_supports(&self, spec: &LinearSpec) -> Support;

    /// Packs weights for this device, once.
    ///
    /// # Errors
    /// An unsupported spec, or no memory.
    fn linear_pack(
        &self,
        stream: &mut Self::Stream,
        weights: Checked<HostWeights<'_>, &LinearSpec>,
    ) -> Result<Self::Packed>;

    /// The packed bytes, with a header that names spec and layout.
    ///
    /// # Errors
    /// The device's.
    fn linear_save(&self, stream: &mut Self::Stream, packed: &Self::Packed) -> Result<Vec<u8>>;

    /// Takes back what [`Linear::linear_save`] gave.
    ///
    /// # Errors
    /// [`Error::Layout`](crate::Error::Layout) where the bytes were saved for another spec, layout or kernel family,
    /// or are damaged in length.
    fn linear_restore(
        &self,
        stream: &mut Self::Stream,
        spec: &LinearSpec,
        saved: &[u8],
    ) -> Result<Self::Packed>;

    /// Scratch bytes of a call of up to `max_rows` rows, exact, or a bound where a vendor decides.
    fn linear_workspace(&self, packed: &Self::Packed, max_rows: usize) -> u64;

    /// Runs it.
    ///
    /// # Errors
    /// The device's.
    fn linear(&self, stream: &mut Self::Stream, args: Checked<LinearArgs<'_, Self>>) -> Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn specs_that_make_no_sense_are_refused() {
        let int8 = LinearSpec::w8a8(64, 32);
        assert!(int8.clone().with_output(DType::I32).check().is_ok());
        for (bad, argument) in [
            (LinearSpec::w8a8(0, 32), "in_features"),
            (LinearSpec::w8a8(64, 0), "out_features"),
            (LinearSpec::w8a8(MAX_INT8_IN_FEATURES + 1, 1), "in_features"),
            (LinearSpec { weights: WeightFormat::F32, ..int8.clone() }, "activations"),
            (int8.clone().with_output(DType::I8), "output"),
            (int8.clone().gated(Activation::Silu).with_output(DType::I32), "output"),
            (LinearSpec::float(8, 8, WeightFormat::F32).with_output(DType::I32), "output"),
            (LinearSpec::float(usize::MAX, 8, WeightFormat::F32), "weight bytes"),
            (LinearSpec::float(8, usize::MAX, WeightFormat::F32).gated(Activation::Silu), "weight bytes"),
        ] {
            match bad.check().unwrap_err() {
                Error::Argument { argument: found, .. } | Error::Limit { argument: found, .. } => {
                    assert_eq!(found, argument, "{bad:?}");
                }
                other => panic!("{bad:?}: {other}"),
            }
        }
    }

    #[test]
    fn host_weights_are_held_against_their_spec() {
        let spec = LinearSpec::w8a8(4, 2);
        let q = [0i8; 8];
        let check =
            |q: &[i8], scales: &[f32]| HostWeights::Int8PerChannel { q, scales }.check(&spec).map(|_| ());
        assert!(check(&q, &[1.0, 2.0]).is_ok());
        assert!(check(&q[1..], &[1.0, 2.0]).is_err());
        assert!(check(&q, &[1.0]).is_err());
        for bad in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            let error = check(&q, &[1.0, bad]).unwrap_err();
            assert!(error.to_string().contains("row 1"), "{error}");
        }
        assert!(HostWeights::F32(&[0.0; 8]).check(&spec).is_err(), "another format");
    }
}
