//! Writing a step's keys and values.

use super::{CHECK, KvCacheInfo, KvCacheOps, KvValues, SlotPlan};
use crate::Checked;
use halite_hal::{DType, Result, Tensor};

/// One layer's keys and values of a step, to be written.
#[derive(Clone, Debug)]
pub struct CacheWriteArgs<'a, B: KvCacheOps> {
    /// The slots, as last updated.
    pub slots: &'a B::Slots,
    /// The cache.
    pub cache: &'a B::KvCache,
    /// Which layer.
    pub layer: usize,
    /// F32 `[tokens, kv_heads, head_dim]`; outer dimensions may be strided.
    pub k: &'a Tensor<B>,
    /// F32 `[tokens, kv_heads, value_head_dim]`; outer dimensions may be strided.
    pub v: &'a Tensor<B>,
}

impl<B: KvCacheOps> CacheWriteArgs<'_, B> {
    /// Checks shapes, types and the layer.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument.
    pub fn check(self) -> Result<Checked<Self>> {
        let (spec, tokens) = (self.cache.spec(), self.slots.tokens());
        check_place::<B>(self.slots, self.cache, self.layer, KvValues::Own)?;
        CHECK.tensor("k", self.k, DType::F32, &[tokens, spec.kv_heads, spec.head_dim])?;
        CHECK.tensor("v", self.v, DType::F32, &[tokens, spec.kv_heads, spec.value_head_dim])?;
        Ok(Checked::new(self))
    }
}

/// One layer's latents and rotated keys of a step, to be written to a cache of [`KvSpec::latent`](super::KvSpec::latent).
#[derive(Clone, Debug)]
pub struct LatentWriteArgs<'a, B: KvCacheOps> {
    /// The slots, as last updated.
    pub slots: &'a B::Slots,
    /// The cache.
    pub cache: &'a B::KvCache,
    /// Which layer.
    pub layer: usize,
    /// F32 `[tokens, kv_heads, value_head_dim]`: compressed latents, after their norm; outer dimensions may be strided.
    pub latent: &'a Tensor<B>,
    /// F32 `[tokens, kv_heads, head_dim - value_head_dim]`: the key that all heads share, already rotated; outer
    /// dimensions may be strided.
    pub rope_key: &'a Tensor<B>,
}

impl<B: KvCacheOps> LatentWriteArgs<'_, B> {
    /// Checks shapes, types and the layer.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument.
    pub fn check(self) -> Result<Checked<Self>> {
        let (spec, tokens) = (self.cache.spec(), self.slots.tokens());
        check_place::<B>(self.slots, self.cache, self.layer, KvValues::KeyPrefix)?;
        CHECK.tensor("latent", self.latent, DType::F32, &[tokens, spec.kv_heads, spec.value_head_dim])?;
        let rest = spec.head_dim.saturating_sub(spec.value_head_dim);
        CHECK.tensor("rope_key", self.rope_key, DType::F32, &[tokens, spec.kv_heads, rest])?;
        Ok(Checked::new(self))
    }
}

/// Slots and layer of a cache that keeps its values as the write wants it.
fn check_place<B: KvCacheOps>(
    slots: &B::Slots,
    cache: &B::KvCache,
    layer: usize,
    values: KvValues,
) -> Result<()> {
    let spec = cache.spec();
    CHECK.that(spec.values == values, "cache", format!("a cache with values {values:?}"), spec.values)?;
    CHECK.that(layer < spec.layers, "layer", format!("below {}", spec.layers), layer)?;
    CHECK.that(
        slots.cache_slots() == cache.slots(),
        "slots",
        format!("planned for a cache of {} slots", cache.slots()),
        slots.cache_slots(),
    )
}
