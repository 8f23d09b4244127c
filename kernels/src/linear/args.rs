//! One call: activations, packed weights, epilogue and output.

use super::{ActivationFormat, CHECK, Epilogue, Linear};
use crate::Checked;
use halite_hal::{DType, Device, Result, Tensor};

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
