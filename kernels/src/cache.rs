//! The paged KV cache: blocks of `block_size` token slots, written by slot, copied, exported and imported.
//!
//! Slot `s` is token slot `s % block_size` of block `s / block_size`. How a backend lays blocks out in memory is its
//! own affair; [`KvCacheOps::cache_export`] and [`KvCacheOps::cache_import`] speak the canonical layout of
//! docs/kv-layout.md: for each block, for each layer, the keys `[block_size, kv_heads, head_dim]`, then the values
//! `[block_size, kv_heads, value_head_dim]`, dense, little-endian, in the cache's storage type.

use crate::{Checked, Support, check::Check};
use halite_hal::{DType, Device, Error, Result, Tensor};
use std::fmt::Display;

const CHECK: Check = Check("cache");

/// The shape of a KV cache.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct KvSpec {
    /// Layers that share the block table.
    pub layers: usize,
    /// Key and value heads a layer.
    pub kv_heads: usize,
    /// Elements of a key.
    pub head_dim: usize,
    /// Elements of a value.
    pub value_head_dim: usize,
    /// Token slots of a block.
    pub block_size: usize,
    /// How keys and values are stored: F32, F16 or BF16.
    pub dtype: DType,
}

impl KvSpec {
    /// A cache of BF16 keys and values in blocks of 16 slots.
    pub fn new(layers: usize, kv_heads: usize, head_dim: usize) -> Self {
        KvSpec { layers, kv_heads, head_dim, value_head_dim: head_dim, block_size: 16, dtype: DType::Bf16 }
    }

    /// Values of another size than keys.
    pub fn with_value_head_dim(mut self, value_head_dim: usize) -> Self {
        self.value_head_dim = value_head_dim;
        self
    }

    /// Another block size.
    pub fn with_block_size(mut self, block_size: usize) -> Self {
        self.block_size = block_size;
        self
    }

    /// Another storage type.
    pub fn with_dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }

    /// Bytes of one block, all layers, keys and values, in the canonical layout.
    ///
    /// # Errors
    /// A size of zero, or a block beyond 2^63 bytes.
    pub fn block_bytes(&self) -> Result<u64> {
        for (argument, size) in [
            ("layers", self.layers),
            ("kv_heads", self.kv_heads),
            ("head_dim", self.head_dim),
            ("value_head_dim", self.value_head_dim),
            ("block_size", self.block_size),
        ] {
            CHECK.positive(argument, size)?;
        }
        let sizes = [self.kv_heads, self.block_size, self.layers, self.dtype.size()];
        let row = self.head_dim.checked_add(self.value_head_dim);
        let bytes =
            row.and_then(|row| sizes.iter().try_fold(row, |product, &size| product.checked_mul(size)));
        fits(bytes.map(|bytes| bytes as u64))
    }

    /// Bytes of `blocks` blocks.
    ///
    /// # Errors
    /// As [`KvSpec::block_bytes`], or more than 2^63 bytes in all, or more than 2^31 blocks.
    pub fn cache_bytes(&self, blocks: usize) -> Result<u64> {
        CHECK.limit("blocks", blocks, i32::MAX as usize)?;
        fits(self.block_bytes()?.checked_mul(blocks as u64))
    }
}

/// A size in bytes that did not overflow and that offsets can reach.
fn fits(bytes: Option<u64>) -> Result<u64> {
    bytes.filter(|&bytes| bytes <= i64::MAX as u64).ok_or(Error::Limit {
        operator: CHECK.0,
        argument: "bytes",
        got: bytes.unwrap_or(u64::MAX),
        limit: i64::MAX as u64,
    })
}

/// What a backend's cache tells of itself.
pub trait KvCacheInfo {
    /// Its shape.
    fn spec(&self) -> &KvSpec;
    /// Its number of blocks.
    fn blocks(&self) -> usize;

    /// Its number of token slots.
    fn slots(&self) -> usize {
        self.blocks() * self.spec().block_size
    }
}

/// What a backend's slot table tells of itself.
pub trait SlotPlan {
    /// The largest number of tokens of a step.
    fn max_tokens(&self) -> usize;
    /// Token slots of the cache that it was made for.
    fn cache_slots(&self) -> usize;
    /// Tokens of the current step.
    fn tokens(&self) -> usize;

    /// What a step is checked against.
    fn limits(&self) -> SlotLimits {
        SlotLimits { max_tokens: self.max_tokens(), cache_slots: self.cache_slots() }
    }
}

/// What a [`SlotMapping`] was checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlotLimits {
    /// The largest number of tokens of a step.
    pub max_tokens: usize,
    /// Token slots of the cache.
    pub cache_slots: usize,
}

/// Where each token of a step is written.
#[derive(Clone, Copy, Debug)]
pub struct SlotMapping<'a> {
    /// `[tokens]`: a slot of the cache; a negative one is skipped.
    pub slots: &'a [i64],
}

impl SlotMapping<'_> {
    /// Checks the slots against the plan.
    ///
    /// # Errors
    /// More tokens than planned, a slot beyond the cache, or a slot that two tokens share.
    pub fn check(self, plan: &impl SlotPlan) -> Result<Checked<Self, SlotLimits>> {
        CHECK.limit("tokens", self.slots.len(), plan.max_tokens())?;
        for (token, &slot) in self.slots.iter().enumerate() {
            let inside = slot < 0 || (slot as u64) < plan.cache_slots() as u64;
            if !inside {
                let expected = format!("token {token}'s slot below {}", plan.cache_slots());
                return Err(CHECK.wrong("slot_mapping", expected, slot.to_string()));
            }
        }
        let written = self.slots.iter().copied().filter(|&slot| slot >= 0).collect();
        check_distinct("slot_mapping", "slots", written)?;
        Ok(Checked::with_context(self, plan.limits()))
    }
}

/// One layer's keys and values of a step, to be written.
#[derive(Clone, Debug)]
pub struct CacheWriteArgs<'a, B: KvCacheOps> {
    /// The slots, as last updated.
    pub slots: &'a B::Slots,
    /// The cache.
    pub cache: &'a B::KvCache,
    /// Which layer.
    pub layer: usize,
    /// F32 `[tokens, kv_heads, head_dim]`; outer dimensions may be strided.
    pub k: &'a Tensor<B>,
    /// F32 `[tokens, kv_heads, value_head_dim]`; outer dimensions may be strided.
    pub v: &'a Tensor<B>,
}

impl<B: KvCacheOps> CacheWriteArgs<'_, B> {
    /// Checks shapes, types and the layer.
    ///
    /// # Errors
    /// [`Error::Argument`] naming the argument.
    pub fn check(self) -> Result<Checked<Self>> {
        let (spec, tokens) = (self.cache.spec(), self.slots.tokens());
        CHECK.that(self.layer < spec.layers, "layer", format!("below {}", spec.layers), self.layer)?;
        CHECK.that(
            self.slots.cache_slots() == self.cache.slots(),
            "slots",
            format!("planned for a cache of {} slots", self.cache.slots()),
            self.slots.cache_slots(),
        )?;
        CHECK.tensor("k", self.k, DType::F32, &[tokens, spec.kv_heads, spec.head_dim])?;
        CHECK.tensor("v", self.v, DType::F32, &[tokens, spec.kv_heads, spec.value_head_dim])?;
        Ok(Checked::new(self))
    }
}

/// Copies of whole blocks, all layers.
#[derive(Clone, Copy, Debug)]
pub struct BlockCopies<'a, C> {
    /// The cache.
    pub cache: &'a C,
    /// `(from, to)` block ids, done as if all reads came before all writes.
    pub pairs: &'a [(u32, u32)],
}

impl<C: KvCacheInfo> BlockCopies<'_, C> {
    /// Checks the ids against the cache.
    ///
    /// # Errors
    /// A block beyond the cache, or a destination named twice.
    pub fn check(self) -> Result<Checked<Self>> {
        let (sources, targets): (Vec<u32>, Vec<u32>) = self.pairs.iter().copied().unzip();
        check_blocks("pairs", &sources, self.cache)?;
        check_blocks("pairs", &targets, self.cache)?;
        check_distinct("pairs", "destinations", targets)?;
        Ok(Checked::new(self))
    }
}

/// Blocks to export.
#[derive(Clone, Copy, Debug)]
pub struct BlockExport<'a, C> {
    /// The cache.
    pub cache: &'a C,
    /// Block ids.
    pub blocks: &'a [u32],
}

impl<C: KvCacheInfo> BlockExport<'_, C> {
    /// Checks the ids against the cache.
    ///
    /// # Errors
    /// A block beyond the cache.
    pub fn check(self) -> Result<Checked<Self>> {
        check_blocks("blocks", self.blocks, self.cache)?;
        Ok(Checked::new(self))
    }
}

/// Blocks to import, and their contents.
#[derive(Clone, Copy, Debug)]
pub struct BlockImport<'a, C> {
    /// The cache.
    pub cache: &'a C,
    /// Block ids.
    pub blocks: &'a [u32],
    /// The blocks in the canonical layout, one after the other.
    pub bytes: &'a [u8],
}

impl<C: KvCacheInfo> BlockImport<'_, C> {
    /// Checks the ids against the cache, and the bytes against the canonical size.
    ///
    /// # Errors
    /// A block beyond the cache, a block named twice, or another number of bytes.
    pub fn check(self) -> Result<Checked<Self>> {
        let expected = self.cache.spec().cache_bytes(self.blocks.len())?;
        CHECK.that(
            self.bytes.len() as u64 == expected,
            "bytes",
            format!("{expected} bytes"),
            self.bytes.len(),
        )?;
        check_blocks("blocks", self.blocks, self.cache)?;
        check_distinct("blocks", "blocks", self.blocks.to_vec())?;
        Ok(Checked::new(self))
    }
}

fn check_blocks(argument: &'static str, blocks: &[u32], cache: &impl KvCacheInfo) -> Result<()> {
    match blocks.iter().find(|&&block| block as usize >= cache.blocks()) {
        Some(block) => Err(CHECK.wrong(argument, format!("ids below {}", cache.blocks()), block.to_string())),
        None => Ok(()),
    }
}

/// No number stands twice.
fn check_distinct<T: Ord + Display>(argument: &'static str, what: &str, mut numbers: Vec<T>) -> Result<()> {
    numbers.sort_unstable();
    match numbers.array_windows().find(|[a, b]| a == b) {
        Some([twice, _]) => Err(CHECK.wrong(argument, format!("distinct {what}"), format!("{twice} twice"))),
        None => Ok(()),
    }
}

/// The family's trait.
pub trait KvCacheOps: Device {
    /// A counted handle to the cache; its layout is private.
    type KvCache: KvCacheInfo + Clone + std::fmt::Debug + Send + Sync + 'static;
    /// The slots of a step, at stable addresses.
    type Slots: SlotPlan + std::fmt::Debug + Send + 'static;

    /// Whether and how the backend stores `spec`.
    fn cache_supports(&self, spec: &KvSpec) -> Support;

    /// Allocates a cache. Slots hold nothing defined until they are written.
    ///
    /// # Errors
    /// An unsupported spec, offsets beyond the backend's reach, or no memory.
    fn kv_cache(&self, spec: &KvSpec, blocks: usize) -> Result<Self::KvCache>;

    /// Makes room, once, for the slots of steps of up to `max_tokens` tokens.
    ///
    /// # Errors
    /// No memory.
    fn slots_plan(&self, cache: &Self::KvCache, max_tokens: usize) -> Result<Self::Slots>;

    /// Uploads a step's slots: once a step.
    ///
    /// # Errors
    /// The device's.
    fn slots_update(
        &self,
        stream: &mut Self::Stream,
        slots: &mut Self::Slots,
        mapping: &Checked<SlotMapping<'_>, SlotLimits>,
    ) -> Result<()>;

    /// Writes one layer's keys and values: rounds to nearest even, saturates nothing (F32 beyond F16's range becomes
    /// infinite).
    ///
    /// # Errors
    /// The device's.
    fn cache_write(&self, stream: &mut Self::Stream, args: Checked<CacheWriteArgs<'_, Self>>) -> Result<()>;

    /// Copies whole blocks within the cache.
    ///
    /// # Errors
    /// The device's.
    fn cache_copy(
        &self,
        stream: &mut Self::Stream,
        copies: Checked<BlockCopies<'_, Self::KvCache>>,
    ) -> Result<()>;

    /// Starts reading blocks back in the canonical layout.
    ///
    /// # Errors
    /// The device's.
    fn cache_export(
        &self,
        stream: &mut Self::Stream,
        export: Checked<BlockExport<'_, Self::KvCache>>,
    ) -> Result<<Self::Stream as halite_hal::Stream>::Pending>;

    /// Writes blocks from the canonical layout.
    ///
    /// # Errors
    /// The device's.
    fn cache_import(
        &self,
        stream: &mut Self::Stream,
        import: Checked<BlockImport<'_, Self::KvCache>>,
    ) -> Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_overflow_are_refused() {
        let spec = KvSpec::new(32, 32, 128);
        assert_eq!(spec.block_bytes(), Ok(32 * 16 * 32 * 256 * 2));
        assert_eq!(
            spec.cache_bytes(64_000),
            Ok(64_000 * 32 * 16 * 32 * 256 * 2),
            "beyond 2^31 elements is fine"
        );
        assert!(matches!(spec.cache_bytes(1 << 31), Err(Error::Limit { argument: "blocks", .. })));
        for huge in [
            KvSpec { head_dim: usize::MAX, ..spec.clone() },
            KvSpec { layers: usize::MAX, ..spec.clone() },
            KvSpec { block_size: 1 << 60, ..spec.clone() },
        ] {
            assert!(matches!(huge.block_bytes(), Err(Error::Limit { argument: "bytes", .. })), "{huge:?}");
        }
        assert!(matches!(
            KvSpec::new(1, 0, 64).block_bytes(),
            Err(Error::Argument { argument: "kv_heads", .. })
        ));
    }
}
