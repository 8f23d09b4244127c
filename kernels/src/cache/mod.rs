//! The paged KV cache: blocks of `block_size` token slots, written by slot, copied, swapped, exported and imported.
//!
//! Slot `s` is token slot `s % block_size` of block `s / block_size`. How a backend lays blocks out in memory is its
//! own affair; [`KvCacheOps::cache_export`] and [`KvCacheOps::cache_import`] speak the canonical layout of
//! docs/kv-layout.md: for each block, for each layer, the keys `[block_size, kv_heads, head_dim]`, then the values
//! `[block_size, kv_heads, value_head_dim]`, dense, little-endian, in the cache's [`KvFormat`]. With
//! [`KvFormat::Int8PerTokenHead`] each of the two is followed by its scales, F32 `[block_size, kv_heads]`. A cache whose
//! values are the first elements of its keys ([`KvValues::KeyPrefix`]) has the keys only.

mod blocks;
mod slots;
mod spec;
mod steps;
mod write;

pub use blocks::{BlockCopies, BlockExport, BlockImport, BlockTransfer};
pub use slots::{SlotLimits, SlotMapping, SlotPlan};
pub use spec::{KvFormat, KvSpec, KvValues};
pub use steps::BlockSteps;
pub use write::{CacheWriteArgs, LatentWriteArgs};

use crate::{Checked, Support, check::Check};
use halite_hal::{Device, Result};
use std::fmt::Display;

const CHECK: Check = Check("cache");

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

    /// Writes one layer's keys and values. Floats are rounded to nearest even and nothing saturates (F32 beyond F16's
    /// range becomes infinite). INT8 follows the formula of [`quantize`](crate::quantize), a row for each token and
    /// head, and writes the row's scale with it, whatever the slot held before.
    ///
    /// # Errors
    /// The device's.
    fn cache_write(&self, stream: &mut Self::Stream, args: Checked<CacheWriteArgs<'_, Self>>) -> Result<()>;

    /// Writes one layer's latents and rotated keys to a latent cache, rounded as floats of [`KvCacheOps::cache_write`] are.
    ///
    /// # Errors
    /// The device's.
    fn cache_write_latent(
        &self,
        stream: &mut Self::Stream,
        args: Checked<LatentWriteArgs<'_, Self>>,
    ) -> Result<()>;

    /// Copies whole blocks within the cache.
    ///
    /// # Errors
    /// The device's.
    fn cache_copy(
        &self,
        stream: &mut Self::Stream,
        copies: Checked<BlockCopies<'_, Self::KvCache>>,
    ) -> Result<()>;

    /// Copies whole blocks from one cache to another on the same device.
    ///
    /// # Errors
    /// The device's.
    fn cache_swap(
        &self,
        stream: &mut Self::Stream,
        transfer: Checked<BlockTransfer<'_, Self::KvCache>>,
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

/// No number stands twice.
fn check_distinct<T: Ord + Display>(argument: &'static str, what: &str, mut numbers: Vec<T>) -> Result<()> {
    numbers.sort_unstable();
    match numbers.array_windows().find(|[a, b]| a == b) {
        Some([twice, _]) => Err(CHECK.wrong(argument, format!("distinct {what}"), format!("{twice} twice"))),
        None => Ok(()),
    }
}
