//! The paged KV cache: memory of its own for each layer and kind, rows in the order of slots.
//!
//! `layer` is one layer's memory; `slots` the table of a step; `write` takes rows to their slots; `blocks` copies, swaps,
//! exports and imports whole blocks.

mod blocks;
mod layer;
mod slots;
pub(crate) mod write;

use std::sync::Arc;

use halite_hal::{Error, Result};
use halite_kernels::{
    Checked, Support,
    cache::{
        BlockCopies, BlockExport, BlockImport, BlockTransfer, CacheWriteArgs, KvCacheInfo, KvCacheOps,
        KvSpec, LatentWriteArgs, SlotLimits, SlotMapping,
    },
};

use crate::{
    device::Cuda,
    stream::{CudaPending, CudaStream},
    support::unsupported,
};
use layer::Layer;
use write::{Place, format_code};

pub use slots::CudaSlots;
pub(crate) use write::programs;

/// The most layers: each has allocations of its own.
const MAX_LAYERS: usize = 4096;

/// A counted handle to a cache.
#[derive(Clone, Debug)]
pub struct CudaKvCache {
    spec: KvSpec,
    blocks: usize,
    format: i32,
    layers: Arc<[Layer]>,
}

impl KvCacheInfo for CudaKvCache {
    fn spec(&self) -> &KvSpec {
        &self.spec
    }

    fn blocks(&self) -> usize {
        self.blocks
    }
}

impl CudaKvCache {
    /// The memory of a layer, which arguments were checked to have.
    pub(crate) fn layer(&self, layer: usize) -> &Layer {
        &self.layers[layer]
    }

    /// The number that kernels know the format by.
    pub(crate) fn format(&self) -> i32 {
        self.format
    }

    /// Whether both are handles to one cache.
    fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.layers, &other.layers)
    }
}

impl KvCacheOps for Cuda {
    type KvCache = CudaKvCache;
    type Slots = CudaSlots;

    fn cache_supports(&self, spec: &KvSpec) -> Support {
        match format_code(spec.format) {
            Some(_) => Support::Native,
            None => Support::No(format!("{} keys and values: only F32, F16, BF16 and INT8", spec.format)),
        }
    }

    fn kv_cache(&self, spec: &KvSpec, blocks: usize) -> Result<CudaKvCache> {
        let Some(format) = format_code(spec.format) else {
            return Err(unsupported("cache", "this format", spec));
        };
        // Each piece is smaller than the whole, so all fit if it does.
        spec.cache_bytes(blocks)?;
        let slots = blocks.saturating_mul(spec.block_size);
        // Tables of slots are I32.
        for (argument, got, limit) in
            [("layers", spec.layers, MAX_LAYERS), ("slots", slots, i32::MAX as usize)]
        {
            if got > limit {
                let (got, limit) = (got as u64, limit as u64);
                return Err(Error::Limit { operator: "cache", argument, got, limit });
            }
        }
        let layers = (0..spec.layers).map(|_| Layer::alloc(self, spec, blocks)).collect::<Result<_>>()?;
        Ok(CudaKvCache { spec: spec.clone(), blocks, format, layers })
    }

    fn slots_plan(&self, cache: &CudaKvCache, max_tokens: usize) -> Result<CudaSlots> {
        CudaSlots::new(self, cache, max_tokens)
    }

    fn slots_update(
        &self,
        stream: &mut CudaStream,
        slots: &mut CudaSlots,
        mapping: &Checked<SlotMapping<'_>, SlotLimits>,
    ) -> Result<()> {
        slots.update(stream, mapping)
    }

    fn cache_write(&self, stream: &mut CudaStream, args: Checked<CacheWriteArgs<'_, Self>>) -> Result<()> {
        let &CacheWriteArgs { slots, cache, layer, k, v } = &*args;
        write::write(stream, Place { slots, cache, layer, k, v })
    }

    fn cache_write_latent(
        &self,
        stream: &mut CudaStream,
        args: Checked<LatentWriteArgs<'_, Self>>,
    ) -> Result<()> {
        let &LatentWriteArgs { slots, cache, layer, latent: k, rope_key: v } = &*args;
        write::write(stream, Place { slots, cache, layer, k, v })
    }

    fn cache_copy(
        &self,
        stream: &mut CudaStream,
        copies: Checked<BlockCopies<'_, CudaKvCache>>,
    ) -> Result<()> {
        blocks::transfer(self, stream, copies.cache, copies.cache, copies.pairs)
    }

    fn cache_swap(
        &self,
        stream: &mut CudaStream,
        transfer: Checked<BlockTransfer<'_, CudaKvCache>>,
    ) -> Result<()> {
        blocks::transfer(self, stream, transfer.from, transfer.to, transfer.pairs)
    }

    fn cache_export(
        &self,
        stream: &mut CudaStream,
        export: Checked<BlockExport<'_, CudaKvCache>>,
    ) -> Result<CudaPending> {
        blocks::export(self, stream, export.cache, export.blocks)
    }

    fn cache_import(
        &self,
        stream: &mut CudaStream,
        import: Checked<BlockImport<'_, CudaKvCache>>,
    ) -> Result<()> {
        blocks::import(self, stream, import.cache, import.blocks, import.bytes)
    }
}
