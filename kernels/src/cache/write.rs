//! Writing a step's keys and values.

use super::{CHECK, KvCacheInfo, KvCacheOps, SlotPlan};
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
    /// [`Error::Argument`] naming the argument.
    pub fn check(self) -> Result<Checked<Self>> {
        let (spec, tokens) = (self.cache.spec(), self.slots.tokens());
        CHECK.that(self.layer < spec.layers, "layer", format!("below {}", spec.layers), self.layer)?;
        CHECK.that(
            self.slots.cache_slots() == self.cache.slots(),
            "slots",
            format!("planned for a cache of {} slots", self.cache.slots()),
            self.slots.cache_slots(),
        )?;
        CHECK.tensor("k", self.k, DType::F32, &[tokens, spec.kv_heads, spec.head_dim])?;
        CHECK.tensor("v", self.v, DType::F32, &[tokens, spec.kv_heads, spec.value_head_dim])?;
        Ok(Checked::new(self))
    }
}
