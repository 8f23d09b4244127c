//! The paged KV cache: memory of its own for each layer and kind, rows in the order of slots.
//!
//! `layer` is one layer's memory; `slots` the table of a step; `write` takes rows to their slots; `records` copies what a
//! table says, of which `blocks` makes copies, swaps, export and import.

mod blocks;
mod layer;
mod records;
mod slots;
pub(crate) mod write;

pub use slots::WgpuSlots;

use crate::{device::Wgpu, operand::Operand, read_back::ReadBack, stream::WgpuStream, support::unsupported};
use halite_hal::{DType, Error, Result};
use halite_kernels::{
    Checked, Support,
    cache::{
        BlockCopies, BlockExport, BlockImport, BlockTransfer, CacheWriteArgs, KvCacheInfo, KvCacheOps,
        KvSpec, KvValues, LatentWriteArgs, SlotLimits, SlotMapping,
    },
};
use layer::{Kind, Layer};
use std::sync::Arc;
use write::Place;

/// The most layers: each has allocations of its own.
const MAX_LAYERS: usize = 4096;
/// The longest key or value that a workgroup writes.
const MAX_DIM: usize = 1 << 16;

/// A counted handle to a cache.
#[derive(Clone, Debug)]
pub struct WgpuKvCache {
    spec: KvSpec,
    blocks: usize,
    /// The number that shaders know the format by.
    format: u32,
    layers: Arc<[Layer]>,
}

impl KvCacheInfo for WgpuKvCache {
    fn spec(&self) -> &KvSpec {
        &self.spec
    }

    fn blocks(&self) -> usize {
        self.blocks
    }
}

impl WgpuKvCache {
    /// `[blocks, block_size, kv_heads, head_dim]` of the format's element type.
    pub(crate) fn keys(&self, layer: usize) -> Operand {
        self.operand(Kind::Keys, layer)
    }

    /// `[blocks, block_size, kv_heads, value_head_dim]`; the keys' memory where values are part of them.
    pub(crate) fn values(&self, layer: usize) -> Operand {
        let kind = if self.spec.values == KvValues::KeyPrefix { Kind::Keys } else { Kind::Values };
        self.operand(kind, layer)
    }

    /// The number that shaders know the format by: 0 to 3 for F32, F16, BF16 and INT8.
    pub(crate) fn format(&self) -> u32 {
        self.format
    }

    /// F32, where the format has scales: `[blocks, block_size, kv_heads]` of keys and, from
    /// [`WgpuKvCache::value_scales_at`] on, of values.
    pub(crate) fn all_scales(&self, layer: usize) -> Option<Operand> {
        let scales = &self.layers[layer].scales;
        self.has_scales().then(|| Operand::all(scales, DType::F32))
    }

    /// The element of all scales that is the first value's.
    pub(crate) fn value_scales_at(&self) -> usize {
        layer::value_scales(&self.spec, self.blocks) / DType::F32.size()
    }

    fn has_scales(&self) -> bool {
        self.spec.format.scale_bytes() > 0
    }

    fn operand(&self, kind: Kind, layer: usize) -> Operand {
        self.layers[layer].operand(kind, &self.spec, self.blocks)
    }

    /// Whether both are handles to one cache.
    fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.layers, &other.layers)
    }
}

impl KvCacheOps for Wgpu {
    type KvCache = WgpuKvCache;
    type Slots = WgpuSlots;

    fn cache_supports(&self, spec: &KvSpec) -> Support {
        match write::code(spec.format) {
            Some(_) => Support::Native,
            None => Support::No(format!("{} keys and values: only F32, F16, BF16 and INT8", spec.format)),
        }
    }

    fn kv_cache(&self, spec: &KvSpec, blocks: usize) -> Result<WgpuKvCache> {
        let Some(format) = write::code(spec.format) else {
            return Err(unsupported("cache", "this format", spec));
        };
        // Each piece is smaller than the whole, so all fit if it does.
        spec.cache_bytes(blocks)?;
        let limits = [
            ("layers", spec.layers, MAX_LAYERS),
            ("head_dim", spec.head_dim, MAX_DIM),
            ("value_head_dim", spec.value_head_dim, MAX_DIM),
            // Tables of slots are I32.
            ("slots", blocks * spec.block_size, i32::MAX as usize),
        ];
        for (argument, got, limit) in limits {
            if got > limit {
                let (got, limit) = (got as u64, limit as u64);
                return Err(Error::Limit { operator: "cache", argument, got, limit });
            }
        }
        let layers = (0..spec.layers).map(|_| Layer::alloc(self, spec, blocks)).collect::<Result<_>>()?;
        Ok(WgpuKvCache { spec: spec.clone(), blocks, format, layers })
    }

    fn slots_plan(&self, cache: &WgpuKvCache, max_tokens: usize) -> Result<WgpuSlots> {
        WgpuSlots::new(self, cache, max_tokens)
    }

    fn slots_update(
        &self,
        stream: &mut WgpuStream,
        slots: &mut WgpuSlots,
        mapping: &Checked<SlotMapping<'_>, SlotLimits>,
    ) -> Result<()> {
        slots.update(stream, mapping)
    }

    fn cache_write(&self, stream: &mut WgpuStream, args: Checked<CacheWriteArgs<'_, Self>>) -> Result<()> {
        let &CacheWriteArgs { slots, cache, layer, k, v } = &*args;
        write::write(stream, Place { slots, cache, layer, k, v })
    }

    fn cache_write_latent(
        &self,
        stream: &mut WgpuStream,
        args: Checked<LatentWriteArgs<'_, Self>>,
    ) -> Result<()> {
        let &LatentWriteArgs { slots, cache, layer, latent: k, rope_key: v } = &*args;
        write::write(stream, Place { slots, cache, layer, k, v })
    }

    fn cache_copy(
        &self,
        stream: &mut WgpuStream,
        copies: Checked<BlockCopies<'_, WgpuKvCache>>,
    ) -> Result<()> {
        blocks::transfer(self, stream, copies.cache, copies.cache, copies.pairs)
    }

    fn cache_swap(
        &self,
        stream: &mut WgpuStream,
        transfer: Checked<BlockTransfer<'_, WgpuKvCache>>,
    ) -> Result<()> {
        blocks::transfer(self, stream, transfer.from, transfer.to, transfer.pairs)
    }

    fn cache_export(
        &self,
        stream: &mut WgpuStream,
        export: Checked<BlockExport<'_, WgpuKvCache>>,
    ) -> Result<ReadBack> {
        blocks::export(self, stream, export.cache, export.blocks)
    }

    fn cache_import(
        &self,
        stream: &mut WgpuStream,
        import: Checked<BlockImport<'_, WgpuKvCache>>,
    ) -> Result<()> {
        blocks::import(self, stream, import.cache, import.blocks, import.bytes)
    }
}
