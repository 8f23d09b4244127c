//! Which linear layer.

use super::CHECK;
use crate::activation::Activation;
use halite_hal::{DType, Result};

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
}
