//! The paged KV cache: not here yet. Whatever is asked of it is refused by name.

use crate::{
    device::Cuda,
    stream::{CudaPending, CudaStream},
    support::{not_yet, unsupported},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    cache::{
        BlockCopies, BlockExport, BlockImport, BlockTransfer, CacheWriteArgs, KvCacheInfo, KvCacheOps,
        KvSpec, LatentWriteArgs, SlotLimits, SlotMapping, SlotPlan,
    },
};

/// A KV cache; there is none yet.
#[derive(Clone, Debug)]
pub enum CudaKvCache {}

impl KvCacheInfo for CudaKvCache {
    fn spec(&self) -> &KvSpec {
        match *self {}
    }

    fn blocks(&self) -> usize {
        match *self {}
    }
}

/// Slots of a step; there is none yet.
#[derive(Clone, Debug)]
pub enum CudaSlots {}

impl SlotPlan for CudaSlots {
    fn max_tokens(&self) -> usize {
        match *self {}
    }

    fn cache_slots(&self) -> usize {
        match *self {}
    }

    fn tokens(&self) -> usize {
        match *self {}
    }
}

impl KvCacheOps for Cuda {
    type KvCache = CudaKvCache;
    type Slots = CudaSlots;

    fn cache_supports(&self, _: &KvSpec) -> Support {
        not_yet("cache")
    }

    fn kv_cache(&self, spec: &KvSpec, _blocks: usize) -> Result<CudaKvCache> {
        Err(unsupported("cache", "it", spec))
    }

    fn slots_plan(&self, cache: &CudaKvCache, _: usize) -> Result<CudaSlots> {
        match *cache {}
    }

    fn slots_update(
        &self,
        _: &mut CudaStream,
        slots: &mut CudaSlots,
        _: &Checked<SlotMapping<'_>, SlotLimits>,
    ) -> Result<()> {
        match *slots {}
    }

    fn cache_write(&self, _: &mut CudaStream, args: Checked<CacheWriteArgs<'_, Self>>) -> Result<()> {
        match *args.cache {}
    }

    fn cache_write_latent(&self, _: &mut CudaStream, args: Checked<LatentWriteArgs<'_, Self>>) -> Result<()> {
        match *args.cache {}
    }

    fn cache_copy(&self, _: &mut CudaStream, copies: Checked<BlockCopies<'_, CudaKvCache>>) -> Result<()> {
        match *copies.cache {}
    }

    fn cache_swap(
        &self,
        _: &mut CudaStream,
        transfer: Checked<BlockTransfer<'_, CudaKvCache>>,
    ) -> Result<()> {
        match *transfer.from {}
    }

    fn cache_export(
        &self,
        _: &mut CudaStream,
        export: Checked<BlockExport<'_, CudaKvCache>>,
    ) -> Result<CudaPending> {
        match *export.cache {}
    }

    fn cache_import(&self, _: &mut CudaStream, import: Checked<BlockImport<'_, CudaKvCache>>) -> Result<()> {
        match *import.cache {}
    }
}
