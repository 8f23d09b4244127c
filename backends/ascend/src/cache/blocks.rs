//! Whole blocks: copied, swapped between caches, exported and imported in the canonical layout.
//!
//! Copies are the run time's: no operator reads what was never written.

use halite_hal::{Device, Result};

use super::{AscendKvCache, layer::Layer};
use crate::{
    device::Ascend,
    memory::AscendBuffer,
    stream::{AscendPending, AscendStream},
};
use halite_kernels::cache::{BlockSteps, KvSpec};

/// Copies blocks as if all reads came before all writes. Blocks that one pair reads and another writes, where both caches
/// are one, go by way of other memory.
pub(super) fn transfer(
    device: &Ascend,
    stream: &mut AscendStream,
    from: &AscendKvCache,
    to: &AscendKvCache,
    pairs: &[(u32, u32)],
) -> Result<()> {
    let steps = BlockSteps::of(pairs, from.same(to));
    let spec = &from.spec;
    let between = Layer::alloc(device, spec, steps.aside.len())?;
    for (source, target) in from.layers.iter().zip(to.layers.iter()) {
        copy(stream, spec, source, &between, &steps.aside)?;
        copy(stream, spec, source, target, &steps.direct)?;
        copy(stream, spec, &between, target, &steps.back)?;
    }
    Ok(())
}

/// Blocks from layer to layer, runs of neighbours at once.
fn copy(
    stream: &mut AscendStream,
    spec: &KvSpec,
    from: &Layer,
    to: &Layer,
    pairs: &[(u32, u32)],
) -> Result<()> {
    let records = from.records(spec).into_iter().zip(to.records(spec));
    for ((source, bytes), (target, _)) in records {
        for run in pairs.chunk_by(|a, b| a.0 + 1 == b.0 && a.1 + 1 == b.1) {
            let Some(&(first, place)) = run.first() else { continue };
            let (at, from) = (u64::from(place) * bytes, u64::from(first) * bytes);
            stream.copy_bytes((target, at), (source, from), run.len() as u64 * bytes)?;
        }
    }
    Ok(())
}

/// Starts reading blocks back in the canonical layout.
pub(super) fn export(
    device: &Ascend,
    stream: &mut AscendStream,
    cache: &AscendKvCache,
    blocks: &[u32],
) -> Result<AscendPending> {
    let len = cache.spec.cache_bytes(blocks.len())?;
    let canonical = device.alloc(len)?;
    each(cache, blocks, |record, at, place, bytes| {
        stream.copy_bytes((&canonical, place), (record, at), bytes)
    })?;
    stream.read(&canonical, 0, len)
}

/// Writes blocks from the canonical layout.
pub(super) fn import(
    device: &Ascend,
    stream: &mut AscendStream,
    cache: &AscendKvCache,
    blocks: &[u32],
    bytes: &[u8],
) -> Result<()> {
    let canonical = device.alloc(bytes.len() as u64)?;
    stream.stage(&canonical, 0, bytes)?;
    each(cache, blocks, |record, at, place, bytes| {
        stream.copy_bytes((record, at), (&canonical, place), bytes)
    })
}

/// Every record of blocks: memory and byte, the byte of the canonical layout, and how many.
fn each(
    cache: &AscendKvCache,
    blocks: &[u32],
    mut copy: impl FnMut(&AscendBuffer, u64, u64, u64) -> Result<()>,
) -> Result<()> {
    let mut place = 0;
    for &block in blocks {
        for layer in cache.layers.iter() {
            for (record, bytes) in layer.records(&cache.spec) {
                copy(record, u64::from(block) * bytes, place, bytes)?;
                place += bytes;
            }
        }
    }
    Ok(())
}
