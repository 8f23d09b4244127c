//! The paged KV cache in CPU memory.
//!
//! Keys lie as `[layers, blocks, kv_heads, head_dim, block_size]`: positions innermost, so that scores of 16 positions
//! are one vector's work. Values lie as `[layers, blocks, kv_heads, block_size, value_head_dim]`.

use crate::{
    buffer::{CpuBuffer, DEVICE},
    device::Cpu,
    stream::{CpuStream, Ready},
    view::{read, with_float},
};
use halite_hal::{Element, Error, Result, Storage};
use halite_kernels::{
    Checked, Support,
    cache::{
        BlockCopies, BlockExport, BlockImport, CacheWriteArgs, KvCacheInfo, KvCacheOps, KvFormat, KvSpec,
        SlotLimits, SlotMapping, SlotPlan,
    },
};
use std::ops::Range;

/// A counted handle to a cache.
#[derive(Clone, Debug)]
pub struct CpuKvCache {
    spec: KvSpec,
    blocks: usize,
    k: CpuBuffer,
    v: CpuBuffer,
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
enum Kind {
    Keys,
    Values,
}

impl CpuKvCache {
    /// Elements of one block's keys in one layer.
    pub(crate) fn key_block(&self) -> usize {
        self.spec.kv_heads * self.spec.head_dim * self.spec.block_size
    }

    /// Elements of one block's values in one layer.
    pub(crate) fn value_block(&self) -> usize {
        self.spec.kv_heads * self.spec.value_head_dim * self.spec.block_size
    }

    /// The keys' memory and the bytes of one layer in it.
    pub(crate) fn keys(&self, layer: usize) -> (&CpuBuffer, Range<u64>) {
        (&self.k, self.layer_bytes(layer, self.key_block()))
    }

    /// The values' memory and the bytes of one layer in it.
    pub(crate) fn values(&self, layer: usize) -> (&CpuBuffer, Range<u64>) {
        (&self.v, self.layer_bytes(layer, self.value_block()))
    }

    fn layer_bytes(&self, layer: usize, block: usize) -> Range<u64> {
        let size = (self.blocks * block * self.spec.format.element().size()) as u64;
        layer as u64 * size..(layer as u64 + 1) * size
    }

    fn memory(&self, kind: Kind) -> (&CpuBuffer, usize) {
        match kind {
            Kind::Keys => (&self.k, self.key_block()),
            Kind::Values => (&self.v, self.value_block()),
        }
    }

    /// Where element `d` of a head of a slot of a block lies, in elements from the block's first.
    fn place(&self, kind: Kind, head: usize, slot: usize, d: usize) -> usize {
        let spec = &self.spec;
        match kind {
            Kind::Keys => (head * spec.head_dim + d) * spec.block_size + slot,
            Kind::Values => (head * spec.block_size + slot) * spec.value_head_dim + d,
        }
    }

    /// Calls `each` with the place, in this cache, of every element of one block of one layer, in canonical order:
    /// `[block_size, kv_heads, dim]`.
    fn canonical(&self, kind: Kind, mut each: impl FnMut(usize)) {
        let dim = match kind {
            Kind::Keys => self.spec.head_dim,
            Kind::Values => self.spec.value_head_dim,
        };
        for slot in 0..self.spec.block_size {
            for head in 0..self.spec.kv_heads {
                (0..dim).for_each(|d| each(self.place(kind, head, slot, d)));
            }
        }
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
            other => Support::No(format!("{other} keys and values: F32, F16 and BF16 are built")),
        }
    }

    fn kv_cache(&self, spec: &KvSpec, blocks: usize) -> Result<CpuKvCache> {
        self.cache_supports(spec).require("cache", self, spec)?;
        // Both parts are smaller than the whole, so they fit if it does.
        spec.cache_bytes(blocks)?;
        let bytes = |dim: usize| {
            (spec.layers * blocks * spec.kv_heads * spec.block_size * dim * spec.format.element().size())
                as u64
        };
        let (k, v) = (CpuBuffer::alloc(bytes(spec.head_dim))?, CpuBuffer::alloc(bytes(spec.value_head_dim))?);
        Ok(CpuKvCache { spec: spec.clone(), blocks, k, v })
    }

    fn slots_plan(&self, cache: &CpuKvCache, max_tokens: usize) -> Result<CpuSlots> {
        Ok(CpuSlots { max_tokens, cache_slots: cache.slots(), slots: Vec::new() })
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
        let (cache, slots) = (args.cache, &args.slots.slots);
        with_float!(cache.spec.format.element(), Float => {
            for (kind, rows) in [(Kind::Keys, args.k), (Kind::Values, args.v)] {
                let rows = read::<f32>(rows)?;
                let (memory, block) = cache.memory(kind);
                let mut memory = memory.write(cache.layer_bytes(args.layer, block))?;
                let memory: &mut [Float] = bytemuck::cast_slice_mut(&mut memory);
                for (token, &slot) in slots.iter().enumerate() {
                    let Ok(slot) = usize::try_from(slot) else { continue };
                    let (at, slot) = (slot / cache.spec.block_size, slot % cache.spec.block_size);
                    let memory = &mut memory[at * block..][..block];
                    for head in 0..cache.spec.kv_heads {
                        let row = &rows.data()[rows.rows.start(token, head)..][..rows.rows.columns];
                        write_row(kind, cache, memory, head, slot, row);
                    }
                }
            }
        });
        Ok(())
    }

    fn cache_copy(
        &self,
        _stream: &mut CpuStream,
        copies: Checked<BlockCopies<'_, CpuKvCache>>,
    ) -> Result<()> {
        let cache = copies.cache;
        for kind in [Kind::Keys, Kind::Values] {
            let (memory, block) = cache.memory(kind);
            let mut memory = memory.write(0..memory.len())?;
            let bytes = block * cache.spec.format.element().size();
            for layer in 0..cache.spec.layers {
                let start = |block: u32| (layer * cache.blocks + block as usize) * bytes;
                // All reads before all writes: a block may be read by one pair and written by another.
                let read: Vec<Vec<u8>> =
                    copies.pairs.iter().map(|&(from, _)| memory[start(from)..][..bytes].to_vec()).collect();
                for (read, &(_, to)) in read.iter().zip(copies.pairs) {
                    memory[start(to)..][..bytes].copy_from_slice(read);
                }
            }
        }
        Ok(())
    }

    fn cache_export(
        &self,
        _stream: &mut CpuStream,
        export: Checked<BlockExport<'_, CpuKvCache>>,
    ) -> Result<Ready> {
        let cache = export.cache;
        let (k, v) = (cache.k.read(0..cache.k.len())?, cache.v.read(0..cache.v.len())?);
        let size = cache.spec.format.element().size();
        let requested = cache.spec.cache_bytes(export.blocks.len())?;
        let mut bytes = Vec::new();
        // A block may be asked for more often than there is host memory for.
        bytes
            .try_reserve_exact(requested as usize)
            .map_err(|_| Error::OutOfMemory { device: DEVICE.to_owned(), requested })?;
        for &block in export.blocks {
            for layer in 0..cache.spec.layers {
                for (kind, memory) in [(Kind::Keys, &k), (Kind::Values, &v)] {
                    let elements = cache.memory(kind).1;
                    let start = (layer * cache.blocks + block as usize) * elements;
                    cache.canonical(kind, |at| {
                        bytes.extend_from_slice(&memory[(start + at) * size..][..size])
                    });
                }
            }
        }
        Ok(Ready(bytes))
    }

    fn cache_import(
        &self,
        _stream: &mut CpuStream,
        import: Checked<BlockImport<'_, CpuKvCache>>,
    ) -> Result<()> {
        let cache = import.cache;
        let (mut k, mut v) = (cache.k.write(0..cache.k.len())?, cache.v.write(0..cache.v.len())?);
        let size = cache.spec.format.element().size();
        let mut elements = import.bytes.chunks_exact(size);
        for &block in import.blocks {
            for layer in 0..cache.spec.layers {
                for (kind, memory) in [(Kind::Keys, &mut k), (Kind::Values, &mut v)] {
                    let start = (layer * cache.blocks + block as usize) * cache.memory(kind).1;
                    cache.canonical(kind, |at| {
                        if let Some(element) = elements.next() {
                            memory[(start + at) * size..][..size].copy_from_slice(element);
                        }
                    });
                }
            }
        }
        Ok(())
    }
}

/// Writes one head of one token, rounding to nearest even.
fn write_row<T: Element + Narrow>(
    kind: Kind,
    cache: &CpuKvCache,
    memory: &mut [T],
    head: usize,
    slot: usize,
    row: &[f32],
) {
    let start = cache.place(kind, head, slot, 0);
    match kind {
        Kind::Keys => {
            let targets = memory[start..].iter_mut().step_by(cache.spec.block_size);
            targets.zip(row).for_each(|(to, &from)| *to = T::narrow(from));
        }
        Kind::Values => {
            memory[start..][..row.len()].iter_mut().zip(row).for_each(|(to, &from)| *to = T::narrow(from));
        }
    }
}

/// Rounding of one F32.
trait Narrow {
    fn narrow(value: f32) -> Self;
}

impl Narrow for f32 {
    fn narrow(value: f32) -> Self {
        value
    }
}

impl Narrow for half::f16 {
    fn narrow(value: f32) -> Self {
        half::f16::from_f32(value)
    }
}

impl Narrow for half::bf16 {
    fn narrow(value: f32) -> Self {
        half::bf16::from_f32(value)
    }
}
