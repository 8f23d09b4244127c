//! The KV cache by the oracle.

use crate::{
    device::{Exact, Queue, Ready, read},
    fault::Fault,
};
use halite_hal::{DType, Result};
use halite_kernels::{
    Checked, Support,
    cache::{
        BlockCopies, BlockExport, BlockImport, BlockTransfer, CacheWriteArgs, KvCacheInfo, KvCacheOps,
        KvFormat, KvSpec, LatentWriteArgs, SlotLimits, SlotMapping, SlotPlan,
    },
};
use halite_parity::oracle::cache::{Blocks, Kind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Clone, Debug)]
pub(crate) struct Cache {
    pub(crate) spec: KvSpec,
    blocks: usize,
    contents: Arc<Mutex<Blocks>>,
}

impl Cache {
    pub(crate) fn contents(&self) -> MutexGuard<'_, Blocks> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KvCacheInfo for Cache {
    fn spec(&self) -> &KvSpec {
        &self.spec
    }
    fn blocks(&self) -> usize {
        self.blocks
    }
}

#[derive(Debug)]
pub(crate) struct Slots {
    max_tokens: usize,
    cache_slots: usize,
    slots: Vec<i64>,
}

impl SlotPlan for Slots {
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

impl KvCacheOps for Exact {
    type KvCache = Cache;
    type Slots = Slots;

    fn cache_supports(&self, spec: &KvSpec) -> Support {
        match spec.format {
            KvFormat::Float(dtype) if dtype.is_float() => Support::Native,
            KvFormat::Int8PerTokenHead => Support::Native,
            _ => Support::No("keys and values are floats or scaled INT8".into()),
        }
    }

    fn kv_cache(&self, spec: &KvSpec, blocks: usize) -> Result<Cache> {
        spec.cache_bytes(blocks)?;
        self.cache_supports(spec).require("cache", self, spec)?;
        let contents = Arc::new(Mutex::new(Blocks::poisoned(spec, blocks)));
        Ok(Cache { spec: spec.clone(), blocks, contents })
    }

    fn slots_plan(&self, cache: &Cache, max_tokens: usize) -> Result<Slots> {
        Ok(Slots { max_tokens, cache_slots: cache.slots(), slots: Vec::new() })
    }

    fn slots_update(
        &self,
        _: &mut Queue,
        slots: &mut Slots,
        mapping: &Checked<SlotMapping<'_>, SlotLimits>,
    ) -> Result<()> {
        mapping.checked_against("cache", &slots.limits())?;
        slots.slots = mapping.slots.to_vec();
        Ok(())
    }

    fn cache_write(&self, _: &mut Queue, args: Checked<CacheWriteArgs<'_, Self>>) -> Result<()> {
        let spec = &args.cache.spec;
        let narrow = |x: f64| -> f32 {
            let x = x as f32;
            // The upper half of an F32 is BF16, rounded towards zero.
            let truncates = self.has(Fault::CacheTruncates)
                && spec.format == KvFormat::Float(DType::Bf16)
                && x.is_finite();
            if truncates { f32::from_bits(x.to_bits() & 0xFFFF_0000) } else { x }
        };
        let k: Vec<f32> = read(args.k).into_iter().map(narrow).collect();
        let v: Vec<f32> = read(args.v).into_iter().map(narrow).collect();
        let (kd, vd) = (spec.kv_heads * spec.head_dim, spec.kv_heads * spec.value_head_dim);
        let layer = if self.has(Fault::CacheFirstLayer) { 0 } else { args.layer };
        let mut contents = args.cache.contents();
        for (token, &slot) in args.slots.slots.iter().enumerate() {
            if slot < 0 && !self.has(Fault::CacheWritesSkipped) {
                continue;
            }
            let (k, v) = (&k[token * kd..][..kd], &v[token * vd..][..vd]);
            let v = if self.has(Fault::CacheKeysForValues) && kd == vd { k } else { v };
            let slot = slot.max(0) as usize;
            let before = contents.clone();
            contents.write(layer, slot, k, v);
            if spec.format == KvFormat::Int8PerTokenHead {
                for (kind, rows) in Kind::ALL.into_iter().zip([k, v]) {
                    self.spoil_int8(
                        &mut contents,
                        &before,
                        (kind, layer, slot),
                        rows.chunks_exact(kind.dim(spec)),
                    );
                }
            }
        }
        Ok(())
    }

    fn cache_write_latent(&self, _: &mut Queue, args: Checked<LatentWriteArgs<'_, Self>>) -> Result<()> {
        let spec = &args.cache.spec;
        let (latent, rope_key) = (read(args.latent), read(args.rope_key));
        let (rank, rope_dim) = (spec.value_head_dim, spec.head_dim - spec.value_head_dim);
        let mut contents = args.cache.contents();
        for (token, &slot) in args.slots.slots.iter().enumerate().filter(|(_, slot)| **slot >= 0) {
            let row = |head: usize| {
                let at = token * spec.kv_heads + head;
                let (latent, rope_key) =
                    (&latent[at * rank..][..rank], &rope_key[at * rope_dim..][..rope_dim]);
                if self.has(Fault::CacheRopeKeyFirst) { [rope_key, latent] } else { [latent, rope_key] }
                    .concat()
            };
            let mut rows: Vec<f32> = (0..spec.kv_heads).flat_map(row).map(|x| x as f32).collect();
            if self.has(Fault::CacheRopeKeyLost) {
                rows.chunks_exact_mut(spec.head_dim).for_each(|row| row[rank..].fill(0.0));
            }
            contents.write(args.layer, slot as usize, &rows, &[]);
        }
        Ok(())
    }

    fn cache_copy(&self, _: &mut Queue, copies: Checked<BlockCopies<'_, Cache>>) -> Result<()> {
        let mut contents = copies.cache.contents();
        if self.has(Fault::CacheCopiesInOrder) {
            copies.pairs.iter().for_each(|&pair| contents.copy(&[pair]));
        } else {
            let before = contents.clone();
            contents.copy(copies.pairs);
            if self.has(Fault::CacheCopyLeavesScales) && copies.cache.spec.format.scale_bytes() > 0 {
                restore_scales(&mut contents, &before, copies.pairs, &copies.cache.spec);
            }
        }
        Ok(())
    }

    fn cache_swap(&self, _: &mut Queue, transfer: Checked<BlockTransfer<'_, Cache>>) -> Result<()> {
        let read = transfer.from.contents().clone();
        let mut to = transfer.to.contents();
        if self.has(Fault::CacheSwapSameIds) {
            let same: Vec<(u32, u32)> = transfer.pairs.iter().map(|&(from, _)| (from, from)).collect();
            same.iter()
                .filter(|pair| (pair.1 as usize) < transfer.to.blocks)
                .for_each(|&pair| to.copy_from(&read, &[pair]));
            return Ok(());
        }
        if self.has(Fault::CacheSwapInOrder) && Arc::ptr_eq(&transfer.from.contents, &transfer.to.contents) {
            transfer.pairs.iter().for_each(|&pair| to.copy(&[pair]));
            return Ok(());
        }
        to.copy_from(&read, transfer.pairs);
        Ok(())
    }

    fn cache_export(&self, _: &mut Queue, export: Checked<BlockExport<'_, Cache>>) -> Result<Ready> {
        let contents = export.cache.contents();
        Ok(Ready(export.blocks.iter().flat_map(|&block| contents.block(block as usize).to_vec()).collect()))
    }

    fn cache_import(&self, _: &mut Queue, import: Checked<BlockImport<'_, Cache>>) -> Result<()> {
        let mut contents = import.cache.contents();
        let size = contents.block_bytes();
        for (&block, bytes) in import.blocks.iter().zip(import.bytes.chunks_exact(size)) {
            contents.bytes[block as usize * size..][..size].copy_from_slice(bytes);
        }
        Ok(())
    }
}

/// Puts the scales of the copies' targets back to what they were.
fn restore_scales(contents: &mut Blocks, before: &Blocks, pairs: &[(u32, u32)], spec: &KvSpec) {
    for &(_, to) in pairs {
        for slot in to as usize * spec.block_size..(to as usize + 1) * spec.block_size {
            for layer in 0..spec.layers {
                for kind in Kind::ALL {
                    let (q, scales) =
                        (contents.elements(kind, layer, slot), before.scales(kind, layer, slot));
                    contents.put_int8(kind, layer, slot, &bytes(&q), &floats(&scales));
                }
            }
        }
    }
}

fn bytes(values: &[f64]) -> Vec<i8> {
    values.iter().map(|&value| value as i8).collect()
}

fn floats(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&value| value as f32).collect()
}

impl Exact {
    /// What the device does wrong where it quantises keys and values.
    fn spoil_int8<'r>(
        &self,
        contents: &mut Blocks,
        before: &Blocks,
        (kind, layer, slot): (Kind, usize, usize),
        rows: impl Iterator<Item = &'r [f32]>,
    ) {
        let mut q = bytes(&contents.elements(kind, layer, slot));
        let mut scales = floats(&contents.scales(kind, layer, slot));
        if self.has(Fault::CacheInt8Truncates) {
            let truncated =
                rows.zip(&scales).flat_map(|(row, &scale)| row.iter().map(move |x| (x / scale) as i8));
            q = truncated.collect();
        }
        if self.has(Fault::CacheStaleScale) {
            let stale = floats(&before.scales(kind, layer, slot));
            scales
                .iter_mut()
                .zip(stale)
                .filter(|(_, stale)| stale.is_finite())
                .for_each(|(scale, stale)| *scale = stale);
        }
        if self.has(Fault::CacheFirstHeadsScale) {
            let first = scales[0];
            scales.fill(first);
        }
        if self.has(Fault::CacheKeyScaleForValues) && kind == Kind::Values {
            scales = floats(&contents.scales(Kind::Keys, layer, slot));
        }
        if self.has(Fault::CacheScaleOne) {
            scales.fill(1.0);
        }
        contents.put_int8(kind, layer, slot, &q, &scales);
    }
}
