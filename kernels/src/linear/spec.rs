//! Which linear layer.

use super::{ActivationFormat, CHECK, WeightFormat};
use crate::activation::Activation;
use halite_hal::{DType, Result};

/// The largest `in_features` of an INT8 product: 131,071 · 128 · 128 is the last that stays below 2^31.
pub const MAX_INT8_IN_FEATURES: usize = 131_071;

/// Input columns kept in float beside an integer product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct OutlierSpec {
    /// How many: at least one.
    pub columns: usize,
    /// Type of their activations; their weights are F32.
    pub dtype: DType,
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
    /// Columns kept in float beside an integer product.
    pub outliers: Option<OutlierSpec>,
    /// Type of the output. I32 gives the bare sums of an INT8 product, zero points taken off, without scales and
    /// epilogue; I8 and U8 have a static scale in the epilogue.
    pub output: DType,
}

impl LinearSpec {
    /// F32 activations with weights of any format; integers are dequantised to F32 before they are multiplied.
    pub fn float(in_features: usize, out_features: usize, weights: WeightFormat) -> Self {
        let activations = ActivationFormat::Float(DType::F32);
        LinearSpec {
            in_features,
            out_features,
            weights,
            activations,
            gate: None,
            outliers: None,
            output: DType::F32,
        }
    }

    /// INT8 per-token activations with INT8 per-channel weights.
    pub fn w8a8(in_features: usize, out_features: usize) -> Self {
        LinearSpec::float(in_features, out_features, WeightFormat::Int8PerChannel)
            .with_activation_format(ActivationFormat::Int8PerToken)
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

    /// Activations of another format.
    pub fn with_activation_format(mut self, format: ActivationFormat) -> Self {
        self.activations = format;
        self
    }

    /// Weights of another format.
    pub fn with_weights(mut self, format: WeightFormat) -> Self {
        self.weights = format;
        self
    }

    /// So many input columns in float of this type, beside an integer product.
    pub fn with_outliers(mut self, columns: usize, dtype: DType) -> Self {
        self.outliers = Some(OutlierSpec { columns, dtype });
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
        self.activations.check(CHECK, "activations")?;
        self.weights.check(self.in_features)?;
        self.check_formats()?;
        let int8 = self.weights.is_channel_wise() && self.activations.is_quantized();
        self.check_outliers()?;
        // A sum of groups has scales in it.
        let whole = !matches!(self.activations, ActivationFormat::Int8PerGroup { .. });
        let bare = self.output == DType::I32;
        CHECK.that(
            !bare || (int8 && whole && self.gate.is_none() && self.outliers.is_none()),
            "output",
            "I32 of an INT8 product without groups, outliers and a gate only",
            self.output,
        )?;
        let bytes = self.weight_rows().checked_mul(self.in_features).and_then(|n| n.checked_mul(4));
        CHECK.limit("weight bytes", bytes.unwrap_or(usize::MAX), i64::MAX as usize)
    }

    /// Checks that weights and activations go together, and that sums stay in i32.
    fn check_formats(&self) -> Result<()> {
        let (k, group_size) = (self.in_features, self.weights.group_size(self.in_features));
        let (fits, expected) = match (self.activations, group_size) {
            (ActivationFormat::Float(_), _) => (true, "floats"),
            (_, None) => (false, "INT8 with integer weights, floats with any"),
            (ActivationFormat::Int8PerGroup { group_size: columns }, Some(values)) => {
                let whole = columns.is_multiple_of(values) || values.is_multiple_of(columns);
                (
                    whole || self.weights.is_channel_wise(),
                    "groups that are multiples of the weights', or they of these",
                )
            }
            (format, _) => (
                self.weights.is_channel_wise() || !format.has_zero_points(),
                "without zero points where weights have groups",
            ),
        };
        CHECK.that(fits, "activations", expected, (self.weights, self.activations))?;
        match (self.activations.is_quantized(), self.weights.is_channel_wise()) {
            (true, true) => CHECK.limit("in_features", k, self.max_in_features()),
            (true, false) => CHECK.limit("group_size", group_size.unwrap_or(k).min(k), MAX_INT8_IN_FEATURES),
            (false, _) => Ok(()),
        }
    }

    /// The most columns of which no sum of an integer product leaves i32: an operand without zero point is at most 128,
    /// one with a zero point 255.
    fn max_in_features(&self) -> usize {
        let largest = |zero_points| if zero_points { 255 } else { 128 };
        let w = largest(self.weights == WeightFormat::Int8PerChannelAsymmetric);
        (i32::MAX / (w * largest(self.activations.has_zero_points()))) as usize
    }

    fn check_outliers(&self) -> Result<()> {
        let Some(OutlierSpec { columns, dtype }) = self.outliers else { return Ok(()) };
        let integers = self.weights.is_integer() && self.activations.is_quantized();
        let got = (self.weights, self.activations);
        CHECK.that(integers, "outliers", "none but beside integers times integers", got)?;
        let some = columns > 0 && columns <= self.in_features;
        CHECK.that(some, "outliers", format!("1 to {} columns", self.in_features), columns)?;
        CHECK.that(dtype.is_float(), "outliers", "a floating-point type", dtype)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn the_largest_sums_stay_in_i32() {
        for (weights, activations, most) in [
            (WeightFormat::Int8PerChannel, ActivationFormat::Int8PerToken, MAX_INT8_IN_FEATURES),
            (WeightFormat::Int8PerChannelAsymmetric, ActivationFormat::Int8PerTensor, 65_793),
            (WeightFormat::Int8PerChannel, ActivationFormat::AsymmetricPerToken(DType::U8), 65_793),
            (
                WeightFormat::Int8PerChannelAsymmetric,
                ActivationFormat::AsymmetricPerTensor(DType::I8),
                33_025,
            ),
        ] {
            let of = |k| LinearSpec::w8a8(k, 1).with_weights(weights).with_activation_format(activations);
            assert!(of(most).check().is_ok() && of(most + 1).check().is_err(), "{weights:?} {activations:?}");
        }
    }

    #[test]
    fn specs_that_make_no_sense_are_refused() {
        let int8 = LinearSpec::w8a8(64, 32);
        assert!(int8.clone().with_output(DType::I32).check().is_ok());
        for (bad, argument) in [
            (LinearSpec::w8a8(0, 32), "in_features"),
            (LinearSpec::w8a8(64, 0), "out_features"),
            (LinearSpec::w8a8(MAX_INT8_IN_FEATURES + 1, 1), "in_features"),
            (LinearSpec { weights: WeightFormat::F32, ..int8.clone() }, "activations"),
            (
                int8.clone().with_activation_format(ActivationFormat::Int8PerGroup { group_size: 48 }),
                "activations",
            ),
            (
                int8.clone().with_activation_format(ActivationFormat::AsymmetricPerToken(DType::I32)),
                "activations",
            ),
            (int8.clone().with_outliers(0, DType::F32), "outliers"),
            (int8.clone().with_outliers(65, DType::F32), "outliers"),
            (int8.clone().with_outliers(1, DType::I8), "outliers"),
            (int8.clone().with_outliers(1, DType::F32).with_output(DType::I32), "output"),
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
