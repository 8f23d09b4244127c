//! What happens to a product on its way out.

use super::CHECK;
use crate::activation::Activation;
use halite_hal::{DType, Device, Result, Tensor};

/// The static scale of an I8 or U8 output: `out = saturate(round_ties_even(y / scale) + zero_point)`. A NaN gives the
/// zero point.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct OutputScale {
    /// Finite and at least the smallest normal F32.
    pub scale: f32,
    /// What 0 becomes; of the output's type.
    pub zero_point: i32,
}

impl OutputScale {
    /// Symmetric: without a zero point.
    pub fn new(scale: f32) -> Self {
        OutputScale { scale, zero_point: 0 }
    }

    /// With a zero point.
    pub fn with_zero_point(mut self, zero_point: i32) -> Self {
        self.zero_point = zero_point;
        self
    }
}

/// What happens to the product; see [the module](crate::linear) for the order.
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
    /// For an output of I8 or U8, and for no other.
    pub output_scale: Option<OutputScale>,
}

impl<D: Device> Epilogue<'_, D> {
    pub(super) fn check_output_scale(&self, output: DType) -> Result<()> {
        let range = match output {
            DType::I8 => -128..=127,
            DType::U8 => 0..=255,
            _ => {
                let none = self.output_scale.is_none();
                return CHECK.that(none, "output_scale", "none for this output", output);
            }
        };
        let Some(OutputScale { scale, zero_point }) = self.output_scale else {
            return Err(CHECK.wrong("output_scale", format!("a scale for {output}"), "none"));
        };
        let normal = scale.is_finite() && scale >= f32::MIN_POSITIVE;
        CHECK.that(normal, "output_scale", "a finite, positive, normal number", scale)?;
        CHECK.that(
            range.contains(&zero_point),
            "output_scale",
            format!("a zero point in {range:?}"),
            zero_point,
        )
    }
}

impl<D: Device> Default for Epilogue<'_, D> {
    fn default() -> Self {
        Epilogue { bias: None, activation: None, soft_cap: None, residual: None, output_scale: None }
    }
}
