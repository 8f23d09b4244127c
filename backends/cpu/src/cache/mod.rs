//! The paged KV cache in CPU memory.
//!
//! Keys lie as `[layers, blocks, kv_heads, head_dim, block_size]`: positions innermost, so that scores of 16 positions
//! are one vector's work. Values lie as `[layers, blocks, kv_heads, block_size, value_head_dim]`. Scales of INT8, of keys
//! and of values alike, lie as `[layers, blocks, kv_heads, block_size]`.

mod blocks;
pub(crate) mod write;

use crate::{
    buffer::CpuBuffer,
    device::Cpu,
    room::room_for,
    stream::{CpuStream, Ready},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    cache::{
        BlockCopies, BlockExport, BlockImport, BlockTransfer, CacheWriteArgs, KvCacheInfo, KvCacheOps,
        KvFormat, KvSpec, KvValues, LatentWriteArgs, SlotLimits, SlotMapping, SlotPlan,
    },
};
use std::ops::Range;

/// A counted handle to a cache.
#[derive(Clone, Debug)]
pub struct CpuKvCache {
    spec: KvSpec,
    blocks: usize,
    k: Plane,
    v: Plane,
}

/// The memory of keys, or of values.
#[derive(Clone, Debug)]
struct Plane {
    elements: CpuBuffer,
    /// F32, of no bytes where the format has no scales.
    scales: CpuBuffer,
}

impl KvCacheInfo for CpuKvCache {
    fn spec(&self) -> &KvSpec {
        &self.spec
    }

    fn blocks(&self) -> usize {
        self.blocks
    }
}

/// A kind of rows in the cache: keys or values.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Keys,
    Values,
}

const KINDS: [Kind; 2] = [Kind::Keys, Kind::Values];

/// Memory that is one record a (layer, block): elements, or scales.
#[derive(Clone, Copy)]
struct Records<'a> {
    memory: &'a CpuBuffer,
    /// Bytes of one layer's block.
    bytes: usize,
}

impl CpuKvCache {
    /// Elements of a key, or of a value beside it.
    fn dim(&self, kind: Kind) -> usize {
        match kind {
            Kind::Keys => self.spec.head_dim,
            Kind::Values => self.spec.stored_value_dim(),
        }
    }

    /// Elements of one layer's block.
    pub(crate) fn block_elements(&self, kind: Kind) -> usize {
        self.block_scales() * self.dim(kind)
    }

    /// Token slots times heads of one layer's block: its scales, where it has some.
    pub(crate) fn block_scales(&self) -> usize {
        self.spec.kv_heads * self.spec.block_size
    }

    fn plane(&self, kind: Kind) -> &Plane {
        match kind {
            Kind::Keys => &self.k,
            Kind::Values => &self.v,
        }
    }

    fn element_records(&self, kind: Kind) -> Records<'_> {
        let bytes = self.block_elements(kind) * self.spec.format.element().size();
        Records { memory: &self.plane(kind).elements, bytes }
    }

    fn scale_records(&self, kind: Kind) -> Records<'_> {
        let bytes = self.block_scales() * self.spec.format.scale_bytes();
        Records { memory: &self.plane(kind).scales, bytes }
    }

    /// The memory of elements and the bytes of one layer in it.
    pub(crate) fn elements(&self, kind: Kind, layer: usize) -> (&CpuBuffer, Range<u64>) {
        self.layer(self.element_records(kind), layer)
    }

    /// The memory of scales and the bytes of one layer in it: none where the format has no scales.
    pub(crate) fn scales(&self, kind: Kind, layer: usize) -> (&CpuBuffer, Range<u64>) {
        self.layer(self.scale_records(kind), layer)
    }

    fn layer<'a>(&self, records: Records<'a>, layer: usize) -> (&'a CpuBuffer, Range<u64>) {
        let size = (self.blocks * records.bytes) as u64;
        (records.memory, layer as u64 * size..(layer as u64 + 1) * size)
    }

    /// Where element `d` of a head of a slot of a block lies, in elements from the block's first.
    fn place(&self, kind: Kind, head: usize, slot: usize, d: usize) -> usize {
        let (spec, dim) = (&self.spec, self.dim(kind));
        if self.positions_innermost(kind) {
            (head * dim + d) * spec.block_size + slot
        } else {
            (head * spec.block_size + slot) * dim + d
        }
    }

    /// Whether elements of a row lie `block_size` apart, instead of side by side.
    fn positions_innermost(&self, kind: Kind) -> bool {
        matches!((kind, self.spec.values), (Kind::Keys, KvValues::Own))
    }

    /// Where the scale of a head of a slot of a block lies, from the block's first.
    fn scale_place(&self, head: usize, slot: usize) -> usize {
        head * self.spec.block_size + slot
    }
}

/// The slots of a step.
#[derive(Debug)]
pub struct CpuSlots {
    max_tokens: usize,
    cache_slots: usize,
    slots: Vec<i64>,
}

impl SlotPlan for CpuSlots {
    fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    fn cache_slots(&self) -> usize {
        self.cache_slots
    }

    fn tokens(&self) -> usize {
        self.slots.len()
    }
}

impl KvCacheOps for Cpu {
    type KvCache = CpuKvCache;
    type Slots = CpuSlots;

    fn cache_supports(&self, spec: &KvSpec) -> Support {
        match spec.format {
            KvFormat::Float(dtype) if dtype.is_float() => Support::Native,
            KvFormat::Int8PerTokenHead => Support::Native,
            other => Support::No(format!("{other} keys and values: only F32, F16, BF16 and INT8")),
        }
    }

    fn kv_cache(&self, spec: &KvSpec, blocks: usize) -> Result<CpuKvCache> {
        self.cache_supports(spec).require("cache", self, spec)?;
        // Each piece is smaller than the whole, so all fit if it does.
        spec.cache_bytes(blocks)?;
        let rows = spec.layers * blocks * spec.kv_heads * spec.block_size;
        let plane = |dim: usize| {
            Ok(Plane {
                elements: CpuBuffer::alloc((rows * dim * spec.format.element().size()) as u64)?,
                scales: CpuBuffer::alloc((rows * spec.format.scale_bytes()) as u64)?,
            })
        };
        let (k, v) = (plane(spec.head_dim)?, plane(spec.stored_value_dim())?);
        Ok(CpuKvCache { spec: spec.clone(), blocks, k, v })
    }

    fn slots_plan(&self, cache: &CpuKvCache, max_tokens: usize) -> Result<CpuSlots> {
        Ok(CpuSlots { max_tokens, cache_slots: cache.slots(), slots: room_for(max_tokens)? })
    }

    fn slots_update(
        &self,
        _stream: &mut CpuStream,
        slots: &mut CpuSlots,
        mapping: &Checked<SlotMapping<'_>, SlotLimits>,
    ) -> Result<()> {
        mapping.checked_against("cache", &slots.limits())?;
        slots.slots.clear();
        slots.slots.extend_from_slice(mapping.slots);
        Ok(())
    }

    fn cache_write(&self, _stream: &mut CpuStream, args: Checked<CacheWriteArgs<'_, Self>>) -> Result<()> {
        let place = write::Place { cache: args.cache, layer: args.layer, slots: args.slots };
        write::stored(self, &place, Kind::Keys, &[args.k])?;
        write::stored(self, &place, Kind::Values, &[args.v])
    }

    fn cache_write_latent(
        &self,
        _stream: &mut CpuStream,
        args: Checked<LatentWriteArgs<'_, Self>>,
    ) -> Result<()> {
        let place = write::Place { cache: args.cache, layer: args.layer, slots: args.slots };
        write::stored(self, &place, Kind::Keys, &[args.latent, args.rope_key])
    }

    fn cache_copy(
        &self,
        _stream: &mut CpuStream,
        copies: Checked<BlockCopies<'_, CpuKvCache>>,
    ) -> Result<()> {
        blocks::transfer(copies.cache, copies.cache, copies.pairs)
    }

    fn cache_swap(
        &self,
        _stream: &mut CpuStream,
        transfer: Checked<BlockTransfer<'_, CpuKvCache>>,
    ) -> Result<()> {
        blocks::transfer(transfer.from, transfer.to, transfer.pairs)
    }

    fn cache_export(
        &self,
        _stream: &mut CpuStream,
        export: Checked<BlockExport<'_, CpuKvCache>>,
    ) -> Result<Ready> {
        blocks::export(export.cache, export.blocks).map(Ready)
    }

    fn cache_import(
        &self,
        _stream: &mut CpuStream,
        import: Checked<BlockImport<'_, CpuKvCache>>,
    ) -> Result<()> {
        blocks::import(import.cache, import.blocks, import.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Options;

    #[test]
    fn kind_and_form_choose_where_an_element_lies() {
        let cpu = Cpu::new(Options::default().threads(1)).unwrap();
        let own = || KvSpec::new(1, 2, 8).with_block_size(4);
        let latent = || KvSpec::latent(1, 6, 2).with_block_size(4);
        // Element 3 of slot 2 of the last head.
        for (spec, kind, innermost, place) in [
            // Keys as attention reads them, a vector of positions at once; values and latents as they are written.
            (own(), Kind::Keys, true, (8 + 3) * 4 + 2),
            (own(), Kind::Values, false, (4 + 2) * 8 + 3),
            (own().with_value_head_dim(5), Kind::Keys, true, (8 + 3) * 4 + 2),
            (own().with_value_head_dim(5), Kind::Values, false, (4 + 2) * 5 + 3),
            (own().with_format(KvFormat::Int8PerTokenHead), Kind::Keys, true, (8 + 3) * 4 + 2),
            (latent(), Kind::Keys, false, 2 * 8 + 3),
        ] {
            let cache = cpu.kv_cache(&spec, 1).unwrap();
            assert_eq!(cache.positions_innermost(kind), innermost, "{spec:?}");
            assert_eq!(cache.place(kind, spec.kv_heads - 1, 2, 3), place, "{spec:?}");
            assert_eq!(cache.scale_place(spec.kv_heads - 1, 2), (spec.kv_heads - 1) * 4 + 2);
        }
    }
}
