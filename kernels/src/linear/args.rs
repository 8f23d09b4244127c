//! One call: activations, packed weights, epilogue and output.

use super::{Activations, CHECK, Epilogue, Linear};
use crate::Checked;
use halite_hal::{DType, Result, Tensor};

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
        let inputs = self.x.check(spec, rows)?;
        let Epilogue { bias, activation, soft_cap, residual, output_scale } = &self.epilogue;
        let bare = spec.output == DType::I32;
        let nothing = bias.is_none()
            && activation.is_none()
            && soft_cap.is_none()
            && residual.is_none()
            && output_scale.is_none();
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
        self.epilogue.check_output_scale(spec.output)?;
        if let Some(residual) = residual {
            let float = spec.output.is_float();
            CHECK.that(float, "residual", "none for an output of integers", spec.output)?;
            CHECK.tensor("residual", residual, spec.output, &[rows, spec.out_features])?;
        }
        CHECK.disjoint("out", self.out, &inputs)?;
        CHECK.disjoint("out", self.out, &[("bias", *bias), ("residual", *residual)])?;
        Ok(Checked::new(self))
    }
}
