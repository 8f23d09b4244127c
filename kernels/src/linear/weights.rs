//! Weights as the host has them.

use super::{CHECK, LinearSpec, WeightFormat};
use crate::Checked;
use half::{bf16, f16};
use halite_hal::Result;

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
    /// INT8 elements with a scale and a zero point a row: `w = (q - zero_point) · scale`. U8 elements become these by
    /// taking 128 off both.
    Int8PerChannelAsymmetric {
        /// `[weight_rows, in_features]`.
        q: &'a [i8],
        /// `[weight_rows]`.
        scales: &'a [f32],
        /// `[weight_rows]`.
        zero_points: &'a [i8],
    },
    /// Integer weights, with some columns in float beside them.
    WithOutliers {
        /// All columns; what these have in the outlier columns does not matter, for it counts as zero.
        weights: &'a HostWeights<'a>,
        /// The outlier columns, ascending.
        columns: &'a [u32],
        /// `[weight_rows, columns]`.
        values: &'a [f32],
    },
}

impl HostWeights<'_> {
    /// Checks format and sizes against the spec, and the spec itself.
    ///
    /// # Errors
    /// Another format, another number of elements, or scales that are not finite and positive.
    pub fn check(self, spec: &LinearSpec) -> Result<Checked<Self, &LinearSpec>> {
        spec.check()?;
        self.check_outliers(spec)?;
        let (format, elements) = match self.all_columns() {
            HostWeights::F32(data) => (WeightFormat::F32, data.len()),
            HostWeights::F16(data) => (WeightFormat::F16, data.len()),
            HostWeights::Bf16(data) => (WeightFormat::Bf16, data.len()),
            HostWeights::Int8PerChannel { q, scales } => {
                check_scales(spec, scales)?;
                (WeightFormat::Int8PerChannel, q.len())
            }
            HostWeights::Int8PerChannelAsymmetric { q, scales, zero_points } => {
                check_scales(spec, scales)?;
                let (rows, got) = (spec.weight_rows(), zero_points.len());
                CHECK.that(got == rows, "zero_points", format!("{rows} zero points"), got)?;
                (WeightFormat::Int8PerChannelAsymmetric, q.len())
            }
            HostWeights::WithOutliers { .. } => {
                return Err(CHECK.wrong("weights", "outliers once", "outliers of weights with outliers"));
            }
        };
        CHECK.that(format == spec.weights, "weights", format!("{:?}", spec.weights), format)?;
        let expected = spec.weight_rows() * spec.in_features;
        CHECK.that(elements == expected, "weights", format!("{expected} elements"), elements)?;
        Ok(Checked::with_context(self, spec))
    }

    /// The weights of all columns, without what is kept in float beside them.
    pub fn all_columns(&self) -> HostWeights<'_> {
        match self {
            HostWeights::WithOutliers { weights, .. } => **weights,
            other => *other,
        }
    }

    fn check_outliers(&self, spec: &LinearSpec) -> Result<()> {
        let HostWeights::WithOutliers { columns, values, .. } = self else {
            return CHECK.that(spec.outliers.is_none(), "weights", "weights with outliers", "without");
        };
        let Some(outliers) = spec.outliers else {
            return Err(CHECK.wrong("weights", "no outliers", "outliers"));
        };
        let expected = format!("{} ascending columns below {}", outliers.columns, spec.in_features);
        let ascending = columns.windows(2).all(|pair| pair[0] < pair[1]);
        let inside = columns.last().is_some_and(|&last| (last as usize) < spec.in_features);
        let right = columns.len() == outliers.columns && ascending && inside;
        CHECK.that(right, "outliers", expected, columns)?;
        let expected = spec.weight_rows().saturating_mul(outliers.columns);
        CHECK.that(values.len() == expected, "outliers", format!("{expected} values"), values.len())
    }
}

fn check_scales(spec: &LinearSpec, scales: &[f32]) -> Result<()> {
    let rows = spec.weight_rows();
    CHECK.that(scales.len() == rows, "scales", format!("{rows} scales"), scales.len())?;
    // Zero is left out too: a channel of zeros has a scale like any other, and 0 hides a mistake.
    let bad = scales.iter().enumerate().find(|(_, scale)| !(scale.is_finite() && **scale > 0.0));
    match bad {
        Some((row, scale)) => {
            Err(CHECK.wrong("scales", "finite, positive scales", format!("{scale} in row {row}")))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
