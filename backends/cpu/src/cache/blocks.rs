//! Whole blocks: copied, exported and imported in the canonical layout.

use super::{CpuKvCache, KINDS, Kind, Records};
use crate::room::room_for;
use halite_hal::{DType, Result, Storage};

impl CpuKvCache {
    /// Everything that a block has records in, in the canonical order.
    fn records(&self) -> impl Iterator<Item = (Kind, Content, Records<'_>)> {
        KINDS.into_iter().flat_map(|kind| {
            [
                (kind, Content::Elements, self.element_records(kind)),
                (kind, Content::Scales, self.scale_records(kind)),
            ]
        })
    }

    /// Calls `each` with the bytes, within one layer's record of a block, of every item in canonical order:
    /// `[block_size, kv_heads, dim]` elements, or `[block_size, kv_heads]` scales.
    fn canonical(&self, kind: Kind, content: Content, mut each: impl FnMut(std::ops::Range<usize>)) {
        let size = match content {
            Content::Elements => self.spec.format.element().size(),
            Content::Scales => DType::F32.size(),
        };
        let mut item = |place: usize| each(place * size..(place + 1) * size);
        for slot in 0..self.spec.block_size {
            for head in 0..self.spec.kv_heads {
                match content {
                    Content::Elements => {
                        (0..self.dim(kind)).for_each(|d| item(self.place(kind, head, slot, d)));
                    }
                    Content::Scales if self.spec.format.scale_bytes() > 0 => {
                        item(self.scale_place(head, slot))
                    }
                    Content::Scales => {}
                }
            }
        }
    }
}

/// What a record holds.
#[derive(Clone, Copy)]
enum Content {
    Elements,
    Scales,
}

/// Copies blocks as if all reads came before all writes: a block may be read by one pair and written by another, where
/// both caches are one.
pub(super) fn transfer(from: &CpuKvCache, to: &CpuKvCache, pairs: &[(u32, u32)]) -> Result<()> {
    for ((.., source), (.., target)) in from.records().zip(to.records()) {
        let bytes = source.bytes;
        for layer in 0..from.spec.layers {
            let start = |cache: &CpuKvCache, block: u32| (layer * cache.blocks + block as usize) * bytes;
            let read: Vec<Vec<u8>> = {
                let memory = source.memory.read(0..source.memory.len())?;
                pairs.iter().map(|&(block, _)| memory[start(from, block)..][..bytes].to_vec()).collect()
            };
            let mut memory = target.memory.write(0..target.memory.len())?;
            for (read, &(_, block)) in read.iter().zip(pairs) {
                memory[start(to, block)..][..bytes].copy_from_slice(read);
            }
        }
    }
    Ok(())
}

/// Blocks in the canonical layout.
pub(super) fn export(cache: &CpuKvCache, blocks: &[u32]) -> Result<Vec<u8>> {
    // A block may be asked for more often than there is host memory for.
    let mut bytes = room_for(cache.spec.cache_bytes(blocks.len())? as usize)?;
    let mut memories = Vec::new();
    for (kind, content, records) in cache.records() {
        memories.push((kind, content, records.bytes, records.memory.read(0..records.memory.len())?));
    }
    for &block in blocks {
        for layer in 0..cache.spec.layers {
            for (kind, content, record, memory) in &memories {
                let memory = &memory[(layer * cache.blocks + block as usize) * record..][..*record];
                cache.canonical(*kind, *content, |item| bytes.extend_from_slice(&memory[item]));
            }
        }
    }
    Ok(bytes)
}

/// Blocks from the canonical layout.
pub(super) fn import(cache: &CpuKvCache, blocks: &[u32], mut bytes: &[u8]) -> Result<()> {
    let mut memories = Vec::new();
    for (kind, content, records) in cache.records() {
        memories.push((kind, content, records.bytes, records.memory.write(0..records.memory.len())?));
    }
    for &block in blocks {
        for layer in 0..cache.spec.layers {
            for (kind, content, record, memory) in &mut memories {
                let memory = &mut memory[(layer * cache.blocks + block as usize) * *record..][..*record];
                cache.canonical(*kind, *content, |item| {
                    let to = &mut memory[item];
                    if let Some((from, rest)) = bytes.split_at_checked(to.len()) {
                        to.copy_from_slice(from);
                        bytes = rest;
                    }
                });
            }
        }
    }
    Ok(())
}
