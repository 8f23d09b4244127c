//! The paged KV cache: memory of its own for each layer and kind, rows in the order of slots, written by CANN's
//! ScatterPaKvCache.
//!
//! `layer` is one layer's memory; `slots` the table of a step; `write` takes rows to their slots; `blocks` copies, swaps,
//! exports and imports whole blocks.

mod blocks;
mod layer;
mod slots;
mod write;

use std::sync::Arc;

use halite_hal::{Error, Result};
use halite_kernels::{
    Checked, Support,
    cache::{
        BlockCopies, BlockExport, BlockImport, BlockTransfer, CacheWriteArgs, KvCacheInfo, KvCacheOps,
        KvFormat, KvSpec, KvValues, LatentWriteArgs, SlotLimits, SlotMapping,
    },
};

use crate::{
    device::Ascend,
    runtime::Operator,
    stream::{AscendPending, AscendStream},
    support::{by, is_float, unsupported},
};
use layer::Layer;

pub use slots::AscendSlots;
pub(crate) use write::{aside, write_in};

/// The most layers: each has allocations of its own.
const MAX_LAYERS: usize = 4096;

/// A counted handle to a cache.
#[derive(Clone, Debug)]
pub struct AscendKvCache {
    spec: KvSpec,
    blocks: usize,
    layers: Arc<[Layer]>,
}

impl KvCacheInfo for AscendKvCache {
    fn spec(&self) -> &KvSpec {
        &self.spec
    }

    fn blocks(&self) -> usize {
        self.blocks
    }
}

impl AscendKvCache {
    /// The memory of a layer, which arguments were checked to have.
    pub(crate) fn layer(&self, layer: usize) -> &Layer {
        &self.layers[layer]
    }

    /// Whether both are handles to one cache.
    fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.layers, &other.layers)
    }
}

impl KvCacheOps for Ascend {
    type KvCache = AscendKvCache;
    type Slots = AscendSlots;

    fn cache_supports(&self, spec: &KvSpec) -> Support {
        if !matches!(spec.format, KvFormat::Float(dtype) if is_float(dtype)) {
            return Support::No(format!("{} keys and values: only F32, F16 and BF16", spec.format));
        }
        if spec.values != KvValues::Own {
            return Support::No("values that are part of keys: only those beside them".to_owned());
        }
        // Keys and values come in F32, perhaps with gaps, and are written as they are stored.
        by(self, &[Operator::ScatterPaKvCache, Operator::Cast, Operator::InplaceCopy])
    }

    fn kv_cache(&self, spec: &KvSpec, blocks: usize) -> Result<AscendKvCache> {
        // Each piece is smaller than the whole, so all fit if it does.
        spec.cache_bytes(blocks)?;
        self.cache_supports(spec).require("cache", self, spec)?;
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
        Ok(AscendKvCache { spec: spec.clone(), blocks, layers })
    }

    fn slots_plan(&self, cache: &AscendKvCache, max_tokens: usize) -> Result<AscendSlots> {
        AscendSlots::new(self, cache, max_tokens)
    }

    fn slots_update(
        &self,
        stream: &mut AscendStream,
        slots: &mut AscendSlots,
        mapping: &Checked<SlotMapping<'_>, SlotLimits>,
    ) -> Result<()> {
        slots.update(stream, mapping)
    }

    fn cache_write(&self, stream: &mut AscendStream, args: Checked<CacheWriteArgs<'_, Self>>) -> Result<()> {
        write::write(stream, &args)
    }

    fn cache_write_latent(
        &self,
        _: &mut AscendStream,
        args: Checked<LatentWriteArgs<'_, Self>>,
    ) -> Result<()> {
        Err(unsupported("cache", "values that are part of keys", args.cache.spec()))
    }

    fn cache_copy(
        &self,
        stream: &mut AscendStream,
        copies: Checked<BlockCopies<'_, AscendKvCache>>,
    ) -> Result<()> {
        blocks::transfer(self, stream, copies.cache, copies.cache, copies.pairs)
    }

    fn cache_swap(
        &self,
        stream: &mut AscendStream,
        transfer: Checked<BlockTransfer<'_, AscendKvCache>>,
    ) -> Result<()> {
        blocks::transfer(self, stream, transfer.from, transfer.to, transfer.pairs)
    }

    fn cache_export(
        &self,
        stream: &mut AscendStream,
        export: Checked<BlockExport<'_, AscendKvCache>>,
    ) -> Result<AscendPending> {
        blocks::export(self, stream, export.cache, export.blocks)
    }

    fn cache_import(
        &self,
        stream: &mut AscendStream,
        import: Checked<BlockImport<'_, AscendKvCache>>,
    ) -> Result<()> {
        blocks::import(self, stream, import.cache, import.blocks, import.bytes)
    }
}
