//! Whole blocks: copied, swapped between caches, exported, imported.

use super::{CHECK, KvCacheInfo, check_distinct};
use crate::Checked;
use halite_hal::Result;

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

/// Copies of whole blocks, all layers, from one cache to another of the same shape on the same device: blocks go out
/// of the way and come back. Between devices, export and import do that.
#[derive(Clone, Copy, Debug)]
pub struct BlockTransfer<'a, C> {
    /// The cache that is read.
    pub from: &'a C,
    /// The cache that is written; it may be the same one.
    pub to: &'a C,
    /// `(from, to)` block ids, each of its own cache, done as if all reads came before all writes.
    pub pairs: &'a [(u32, u32)],
}

impl<C: KvCacheInfo> BlockTransfer<'_, C> {
    /// Checks that the caches are of one shape, and the ids against them.
    ///
    /// # Errors
    /// Caches of different shapes or formats, a block beyond its cache, or a destination named twice.
    pub fn check(self) -> Result<Checked<Self>> {
        let (from, to) = (self.from.spec(), self.to.spec());
        CHECK.that(from == to, "to", format!("{from:?}"), to)?;
        let (sources, targets): (Vec<u32>, Vec<u32>) = self.pairs.iter().copied().unzip();
        check_blocks("pairs", &sources, self.from)?;
        check_blocks("pairs", &targets, self.to)?;
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
