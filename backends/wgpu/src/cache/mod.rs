//! Not built yet.

use crate::{
    device::Wgpu,
    unbuilt::{REASON, Unbuilt, unbuilt},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support, cache::BlockCopies, cache::BlockExport, cache::BlockImport, cache::BlockTransfer,
    cache::CacheWriteArgs, cache::KvCacheOps, cache::KvSpec, cache::LatentWriteArgs, cache::SlotLimits,
    cache::SlotMapping,
};

impl KvCacheOps for Wgpu {
    type KvCache = Unbuilt;
    type Slots = Unbuilt;
    fn cache_supports(&self, _: &KvSpec) -> Support {
        Support::No(REASON.to_owned())
    }
    fn kv_cache(&self, _: &KvSpec, _: usize) -> Result<Self::KvCache> {
        Err(unbuilt("cache"))
    }
    fn slots_plan(&self, _: &Self::KvCache, _: usize) -> Result<Self::Slots> {
        Err(unbuilt("cache"))
    }
    fn slots_update(
        &self,
        _: &mut Self::Stream,
        _: &mut Self::Slots,
        _: &Checked<SlotMapping<'_>, SlotLimits>,
    ) -> Result<()> {
        Err(unbuilt("cache"))
    }
    fn cache_write(&self, _: &mut Self::Stream, _: Checked<CacheWriteArgs<'_, Self>>) -> Result<()> {
        Err(unbuilt("cache"))
    }
    fn cache_write_latent(&self, _: &mut Self::Stream, _: Checked<LatentWriteArgs<'_, Self>>) -> Result<()> {
        Err(unbuilt("cache"))
    }
    fn cache_copy(&self, _: &mut Self::Stream, _: Checked<BlockCopies<'_, Self::KvCache>>) -> Result<()> {
        Err(unbuilt("cache"))
    }
    fn cache_swap(&self, _: &mut Self::Stream, _: Checked<BlockTransfer<'_, Self::KvCache>>) -> Result<()> {
        Err(unbuilt("cache"))
    }
    fn cache_export(
        &self,
        _: &mut Self::Stream,
        _: Checked<BlockExport<'_, Self::KvCache>>,
    ) -> Result<<Self::Stream as halite_hal::Stream>::Pending> {
        Err(unbuilt("cache"))
    }
    fn cache_import(&self, _: &mut Self::Stream, _: Checked<BlockImport<'_, Self::KvCache>>) -> Result<()> {
        Err(unbuilt("cache"))
    }
}
