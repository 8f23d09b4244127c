//! Whole blocks: copied, swapped between caches, exported and imported in the canonical layout.

use super::{
    WgpuKvCache,
    layer::{KINDS, Kind, Layer},
    records::{self, Pairs, Records},
};
use crate::{device::Wgpu, memory::WgpuBuffer, operand::Operand, read_back::ReadBack, stream::WgpuStream};
use halite_hal::{DType, Device, Error, Result, Stream};
use halite_kernels::cache::{BlockSteps, KvSpec};

/// Copies blocks as if all reads came before all writes. Blocks that one pair reads and another writes, where both caches
/// are one, go by way of other memory.
pub(super) fn transfer(
    device: &Wgpu,
    stream: &mut WgpuStream,
    from: &WgpuKvCache,
    to: &WgpuKvCache,
    pairs: &[(u32, u32)],
) -> Result<()> {
    let steps = BlockSteps::of(pairs, from.same(to));
    let upload =
        |stream: &mut WgpuStream, pairs: &[(u32, u32)]| Pairs::upload(device, stream, pairs.iter().copied());
    let [aside, direct, back] =
        [upload(stream, &steps.aside)?, upload(stream, &steps.direct)?, upload(stream, &steps.back)?];
    let spec = &from.spec;
    let (kept, between) = (steps.aside.len(), Layer::alloc(device, spec, steps.aside.len())?);
    for (source, target) in from.layers.iter().zip(to.layers.iter()) {
        for kind in KINDS {
            let bytes = kind.bytes(spec);
            let source = source.records(kind, spec, from.blocks);
            let target = target.records(kind, spec, to.blocks);
            let between = between.records(kind, spec, kept);
            records::copy(stream, &aside, bytes, &source, &between)?;
            records::copy(stream, &direct, bytes, &source, &target)?;
            records::copy(stream, &back, bytes, &between, &target)?;
        }
    }
    Ok(())
}

/// Starts reading blocks back in the canonical layout.
pub(super) fn export(
    device: &Wgpu,
    stream: &mut WgpuStream,
    cache: &WgpuKvCache,
    blocks: &[u32],
) -> Result<ReadBack> {
    let len = cache.spec.cache_bytes(blocks.len())?;
    let canonical = device.alloc(len)?;
    each(stream, cache, blocks, &canonical, Way::Out, device.largest_binding())?;
    stream.read(&canonical, 0, len)
}

/// Writes blocks from the canonical layout.
pub(super) fn import(
    device: &Wgpu,
    stream: &mut WgpuStream,
    cache: &WgpuKvCache,
    blocks: &[u32],
    bytes: &[u8],
) -> Result<()> {
    let canonical = device.alloc(bytes.len() as u64)?;
    stream.stage(&canonical, 0, bytes)?;
    each(stream, cache, blocks, &canonical, Way::In, device.largest_binding())
}

#[derive(Clone, Copy)]
enum Way {
    /// To the canonical layout.
    Out,
    /// From it.
    In,
}

/// Copies every record of blocks, as many blocks at a time as a dispatch reaches in the canonical layout: `limit` bytes.
fn each(
    stream: &mut WgpuStream,
    cache: &WgpuKvCache,
    blocks: &[u32],
    canonical: &WgpuBuffer,
    way: Way,
    limit: u64,
) -> Result<()> {
    let (spec, device) = (&cache.spec, stream.device().clone());
    let block = spec.block_bytes()?;
    if block > limit {
        return Err(Error::Limit { operator: "cache", argument: "bytes of a block", got: block, limit });
    }
    // What is bound begins up to 255 bytes before a piece.
    let at_once = (limit.saturating_sub(512) / block).max(1) as usize;
    for (turn, blocks) in blocks.chunks(at_once).enumerate() {
        let start = (turn * at_once) as u64 * block;
        let part = Operand::bytes(canonical, start..start + blocks.len() as u64 * block, DType::U8);
        let places = blocks.iter().copied().zip(0..);
        let pairs = match way {
            Way::Out => Pairs::upload(&device, stream, places)?,
            Way::In => Pairs::upload(&device, stream, places.map(|(block, place)| (place, block)))?,
        };
        for (layer, kind, first) in places_of(spec, &cache.layers) {
            let there = Records { memory: part.clone(), first, stride: block as usize };
            let here = layer.records(kind, spec, cache.blocks);
            match way {
                Way::Out => records::copy(stream, &pairs, kind.bytes(spec), &here, &there)?,
                Way::In => records::copy(stream, &pairs, kind.bytes(spec), &there, &here)?,
            }
        }
    }
    Ok(())
}

/// Every record of a block and where it begins in the canonical layout, in bytes.
fn places_of<'a>(spec: &'a KvSpec, layers: &'a [Layer]) -> impl Iterator<Item = (&'a Layer, Kind, usize)> {
    let records = layers.iter().flat_map(|layer| KINDS.map(|kind| (layer, kind)));
    records.scan(0, |next, (layer, kind)| {
        let first = *next;
        *next += kind.bytes(spec);
        Some((layer, kind, first))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use halite_hal::Pending;
    use halite_kernels::cache::{KvCacheOps, KvFormat};

    #[test]
    fn pieces_of_the_canonical_layout_are_one() -> Result<()> {
        let Some(gpu) = testing::gpu("blocks in pieces") else { return Ok(()) };
        let stream = &mut gpu.stream()?;
        // Blocks of an odd number of bytes.
        let spec = KvSpec::new(2, 1, 5).with_block_size(3).with_format(KvFormat::Int8PerTokenHead);
        let (cache, size) = (gpu.kv_cache(&spec, 9)?, spec.block_bytes()? as usize);
        let bytes: Vec<u8> = (0..9 * size).map(|i| (i % 251) as u8).collect();
        let all: Vec<u32> = (0..9).rev().collect();
        let canonical = gpu.alloc(bytes.len() as u64)?;
        stream.stage(&canonical, 0, &bytes)?;
        let limit = 512 + 4 * size as u64;
        each(stream, &cache, &all, &canonical, Way::In, limit)?;
        let back = gpu.alloc(bytes.len() as u64)?;
        each(stream, &cache, &all, &back, Way::Out, limit)?;
        assert!(stream.read(&back, 0, bytes.len() as u64)?.wait()? == bytes, "in pieces");
        assert!(export(&gpu, stream, &cache, &all)?.wait()? == bytes, "in one piece");
        Ok(())
    }
}
