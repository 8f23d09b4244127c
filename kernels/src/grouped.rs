//! Grouped products: rows sorted into groups, each group multiplied with weights of its own.
//!
//! Group `g` is the rows `offsets[g]..offsets[g + 1]`, and `out[r] = x[r] · W[g]ᵀ + bias[g]`, then the gate of the spec,
//! as [`linear`](crate::linear) has it: a row's bits are those of the same row through that layer. All weights are of
//! one spec, of any format of linear layers with an output of floats or I32: there is no epilogue that could hold the
//! static scale of I8 and U8.
//!
//! Offsets are born on the device ([`moe`](crate::moe) counts them there), so they are never trusted: each counts as at
//! least the one before it and at most the number of rows. Rows before the first offset and from the last on belong to
//! no group and are not written.

use crate::{
    Checked, Support,
    check::Check,
    linear::{Activations, Epilogue, Linear, LinearArgs, LinearSpec},
};
use halite_hal::{DType, Error, Result, Tensor};

const CHECK: Check = Check("grouped");

/// One call.
#[derive(Clone, Debug)]
pub struct GroupedArgs<'a, B: Linear> {
    /// `[rows, in_features]`, sorted by group.
    pub x: Activations<'a, B>,
    /// The weights of each group, all of one spec.
    pub weights: &'a [B::Packed],
    /// I32 `[groups + 1]`.
    pub offsets: &'a Tensor<B>,
    /// F32 `[groups, weight_rows]`.
    pub bias: Option<&'a Tensor<B>>,
    /// `[rows, out_features]` of the spec's output type; rows may be strided.
    pub out: &'a Tensor<B>,
}

impl<B: Linear> GroupedArgs<'_, B> {
    /// Checks shapes, types and that the weights are of one spec.
    ///
    /// # Errors
    /// [`Error::Argument`] naming the argument.
    pub fn check(self) -> Result<Checked<Self>> {
        let Some(first) = self.weights.first() else {
            return Err(CHECK.wrong("weights", "at least one group", "none"));
        };
        let spec = first.as_ref();
        if let Some(other) = self.weights.iter().map(AsRef::as_ref).find(|other| *other != spec) {
            return Err(CHECK.wrong("weights", format!("{spec:?} of every group"), format!("{other:?}")));
        }
        let fits = spec.output.is_float() || spec.output == DType::I32;
        CHECK.that(fits, "weights", "an output of floats or I32", spec.output)?;
        CHECK.tensor("offsets", self.offsets, DType::I32, &[self.weights.len() + 1])?;
        if let Some(bias) = self.bias {
            let bare = spec.output == DType::I32;
            CHECK.that(!bare, "bias", "none for I32 output", "a bias")?;
            CHECK.tensor("bias", bias, DType::F32, &[self.weights.len(), spec.weight_rows()])?;
        }
        let others = [("offsets", Some(self.offsets)), ("bias", self.bias)];
        CHECK.disjoint("out", self.out, &others)?;
        // What remains is what a layer of all rows asks for.
        let layer = LinearArgs::<B> {
            x: self.x.clone(),
            weights: first,
            epilogue: Epilogue::default(),
            out: self.out,
        };
        layer.check().map_err(|error| match error {
            Error::Argument { argument, expected, got, .. } => CHECK.wrong(argument, expected, got),
            other => other,
        })?;
        Ok(Checked::new(self))
    }
}

/// The family's trait.
pub trait Grouped: Linear {
    /// Whether and how the backend runs groups of `spec`.
    fn grouped_supports(&self, spec: &LinearSpec) -> Support;

    /// Scratch bytes of a call of up to `max_rows` rows with weights like `packed`: exact, or a bound where a vendor
    /// decides.
    fn grouped_workspace(&self, packed: &Self::Packed, max_rows: usize) -> u64;

    /// Runs it.
    ///
    /// # Errors
    /// The device's.
    fn grouped(&self, stream: &mut Self::Stream, args: Checked<GroupedArgs<'_, Self>>) -> Result<()>;
}
