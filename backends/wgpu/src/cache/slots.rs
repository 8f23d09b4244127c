//! The slots of a step.

use super::WgpuKvCache;
use crate::{device::Wgpu, stream::WgpuStream};
use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    Checked,
    cache::{KvCacheInfo, SlotLimits, SlotMapping, SlotPlan},
};

/// The slots of a step: one table on the device.
#[derive(Debug)]
pub struct WgpuSlots {
    max_tokens: usize,
    cache_slots: usize,
    tokens: usize,
    /// I32 `[max_tokens]`; -1 is skipped.
    pub(crate) table: Tensor<Wgpu>,
}

impl WgpuSlots {
    pub(super) fn new(device: &Wgpu, cache: &WgpuKvCache, max_tokens: usize) -> Result<Self> {
        let table = device.bindable("cache", "bytes of slots", DType::I32, &[max_tokens])?;
        Ok(WgpuSlots { max_tokens, cache_slots: cache.slots(), tokens: 0, table })
    }

    pub(super) fn update(
        &mut self,
        stream: &mut WgpuStream,
        mapping: &Checked<SlotMapping<'_>, SlotLimits>,
    ) -> Result<()> {
        mapping.checked_against("cache", &self.limits())?;
        // Slots of a cache are below 2^31, and these are below the cache's.
        let slots: Vec<i32> = mapping.slots.iter().map(|&slot| i32::try_from(slot).unwrap_or(-1)).collect();
        self.tokens = 0;
        stream.stage(self.table.buffer(), self.table.offset(), bytemuck::cast_slice(&slots))?;
        self.tokens = slots.len();
        Ok(())
    }
}

impl SlotPlan for WgpuSlots {
    fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    fn cache_slots(&self) -> usize {
        self.cache_slots
    }

    fn tokens(&self) -> usize {
        self.tokens
    }
}
