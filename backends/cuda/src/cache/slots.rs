//! The slots of a step.

use halite_hal::{Result, Tensor};
use halite_kernels::{
    Checked,
    cache::{KvCacheInfo, SlotLimits, SlotMapping, SlotPlan},
};

use super::CudaKvCache;
use crate::{device::Cuda, stream::CudaStream, table::Table};

/// The slots of a step: one table on the device.
#[derive(Debug)]
pub struct CudaSlots {
    max_tokens: usize,
    cache_slots: usize,
    tokens: usize,
    /// I32 `[max_tokens]`; -1 is skipped.
    table: Table,
}

impl CudaSlots {
    pub(super) fn new(device: &Cuda, cache: &CudaKvCache, max_tokens: usize) -> Result<Self> {
        let table = Table::new(device, max_tokens)?;
        Ok(CudaSlots { max_tokens, cache_slots: cache.slots(), tokens: 0, table })
    }

    pub(super) fn update(
        &mut self,
        stream: &mut CudaStream,
        mapping: &Checked<SlotMapping<'_>, SlotLimits>,
    ) -> Result<()> {
        mapping.checked_against("cache", &self.limits())?;
        self.tokens = 0;
        // Slots of a cache are below 2^31, and these are below the cache's.
        let slots = mapping.slots.iter().map(|&slot| u32::try_from(slot).unwrap_or(u32::MAX));
        self.table.begin().extend(slots);
        self.table.upload(stream)?;
        self.tokens = mapping.slots.len();
        Ok(())
    }

    /// Where kernels read them.
    pub(crate) fn table(&self) -> &Tensor<Cuda> {
        self.table.tensor()
    }
}

impl SlotPlan for CudaSlots {
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
