//! The up-projections of a layer, on the host.

use super::{CHECK, MlaSpec};
use crate::{
    Checked,
    linear::{HostWeights, WeightFormat},
};
use halite_hal::Result;

/// Both up-projections, row-major, a head after the other. A checkpoint's `kv_b_proj` has, for each head, the rows of its
/// `W_UK` and then those of its `W_UV`.
#[derive(Clone, Copy, Debug)]
pub struct MlaWeights<'a> {
    /// `[heads, nope_dim, kv_lora_rank]`.
    pub w_uk: HostWeights<'a>,
    /// `[heads, value_head_dim, kv_lora_rank]`.
    pub w_uv: HostWeights<'a>,
}

impl MlaWeights<'_> {
    /// Checks formats and sizes against the spec, and the spec itself.
    ///
    /// # Errors
    /// Another format than the spec's, or another number of elements.
    pub fn check(self, spec: &MlaSpec) -> Result<Checked<Self, &MlaSpec>> {
        spec.check()?;
        for (argument, weights, rows) in
            [("w_uk", self.w_uk, spec.nope_dim), ("w_uv", self.w_uv, spec.value_head_dim)]
        {
            let (format, elements) = match weights {
                HostWeights::F32(data) => (WeightFormat::F32, data.len()),
                HostWeights::F16(data) => (WeightFormat::F16, data.len()),
                HostWeights::Bf16(data) => (WeightFormat::Bf16, data.len()),
                _ => return Err(CHECK.wrong(argument, format!("{:?}", spec.weights), "another format")),
            };
            CHECK.that(format == spec.weights, argument, format!("{:?}", spec.weights), format)?;
            let expected = spec.heads() * rows * spec.kv_lora_rank();
            CHECK.that(elements == expected, argument, format!("{expected} elements"), elements)?;
        }
        Ok(Checked::with_context(self, spec))
    }
}
