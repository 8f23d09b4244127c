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
