//! Which KV blocks are free, cached or used. Knows no tokens.

use std::collections::BTreeMap;

use super::block_hash::Digest;

/// One counted reference to a used block.
///
/// It cannot be cloned and is consumed by [`BlockPool::release`]: giving a block back twice does not compile.
#[derive(Debug)]
#[must_use = "a reference that is dropped without BlockPool::release leaks its block"]
pub(super) struct BlockRef(u32);

impl BlockRef {
    /// The block's index in the pool, which is its index in the device's cache.
    pub(super) fn index(&self) -> u32 {
        self.0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockState {
    /// Holds nothing anybody may read.
    Free,
    /// Held by nobody, contents still addressable by its digest; `released` orders blocks by age.
    Cached { released: u64 },
    /// Held by `references` >= 1 sequences.
    Used { references: usize },
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub(super) state: BlockState,
    /// The name of the contents, once published. A block with a digest is never written again.
    pub(super) digest: Option<Digest>,
}

/// How many blocks are in each state. `free + cached + used` is `all` after every call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockCounts {
    /// Blocks that hold nothing.
    pub free: usize,
    /// Blocks nobody uses whose contents can still be reused; given away, least recently used first, once none is free.
    pub cached: usize,
    /// Blocks held by at least one running sequence.
    pub used: usize,
    /// The size of the pool.
    pub all: usize,
}

/// A new reference, and the digest its block carried if cached contents had to go for it.
#[derive(Debug)]
pub(super) struct Allocation {
    pub(super) block: BlockRef,
    pub(super) evicted: Option<Digest>,
}

/// The state of every block. Each call costs O(log blocks) at most.
#[derive(Debug)]
pub(super) struct BlockPool {
    pub(super) blocks: Vec<Block>,
    free: Vec<u32>,
    /// Cached blocks by the tick at which they were released: the first one is the least recently used.
    cached: BTreeMap<u64, u32>,
    used: usize,
    tick: u64,
}

impl BlockPool {
    /// A pool of `blocks` free blocks.
    pub(super) fn new(blocks: u32) -> Self {
        Self {
            blocks: vec![Block { state: BlockState::Free, digest: None }; blocks as usize],
            free: (0..blocks).rev().collect(),
            cached: BTreeMap::new(),
            used: 0,
            tick: 0,
        }
    }

    /// Takes a free block, or else the least recently used cached one, whose digest is cleared. `None`: all are used.
    pub(super) fn allocate(&mut self) -> Option<Allocation> {
        let index = match self.free.pop() {
            Some(index) => index,
            None => self.cached.pop_first()?.1,
        };
        let block = &mut self.blocks[index as usize];
        let evicted = block.digest.take();
        block.state = BlockState::Used { references: 1 };
        self.used += 1;
        Some(Allocation { block: BlockRef(index), evicted })
    }

    /// Adds a reference to a published block. `None` if its contents are not addressable.
    pub(super) fn share(&mut self, index: u32) -> Option<BlockRef> {
        let block = self.blocks.get_mut(index as usize)?;
        block.digest?;
        block.state = match block.state {
            BlockState::Free => return None,
            BlockState::Cached { released } => {
                self.cached.remove(&released);
                self.used += 1;
                BlockState::Used { references: 1 }
            }
            BlockState::Used { references } => BlockState::Used { references: references + 1 },
        };
        Some(BlockRef(index))
    }

    /// Names the contents of a used block, which makes it shareable and, once released, cached instead of free.
    pub(super) fn publish(&mut self, block: &BlockRef, digest: Digest) {
        self.blocks[block.0 as usize].digest = Some(digest);
    }

    /// Takes one reference back.
    pub(super) fn release(&mut self, BlockRef(index): BlockRef) {
        let block = &mut self.blocks[index as usize];
        match block.state {
            BlockState::Used { references } if references > 1 => {
                block.state = BlockState::Used { references: references - 1 };
                return;
            }
            BlockState::Used { .. } => self.used -= 1,
            // Unreachable while `BlockRef` is only made by `allocate` and `share`; `check` would report it.
            BlockState::Free | BlockState::Cached { .. } => return,
        }
        if block.digest.is_some() {
            block.state = BlockState::Cached { released: self.tick };
            self.cached.insert(self.tick, index);
            self.tick += 1;
        } else {
            block.state = BlockState::Free;
            self.free.push(index);
        }
    }

    /// Blocks that [`allocate`](Self::allocate) can still give.
    pub(super) fn available(&self) -> usize {
        self.free.len() + self.cached.len()
    }

    pub(super) fn counts(&self) -> BlockCounts {
        let (free, cached) = (self.free.len(), self.cached.len());
        BlockCounts { free, cached, used: self.used, all: self.blocks.len() }
    }

    /// Compares every block with the lists, in O(blocks): for tests and debugging.
    pub(super) fn check(&self) -> Result<(), String> {
        let mut seen = (0, 0, 0);
        for (index, block) in self.blocks.iter().enumerate() {
            match (block.state, block.digest) {
                (BlockState::Free, Some(_)) => return Err(format!("free block {index} has a digest")),
                (BlockState::Free, None) => seen.0 += 1,
                (BlockState::Cached { .. }, None) => {
                    return Err(format!("cached block {index} has no digest"));
                }
                (BlockState::Cached { released }, Some(_)) => {
                    if self.cached.get(&released).map(|&i| i as usize) != Some(index) {
                        return Err(format!("cached block {index} is not in the list of cached blocks"));
                    }
                    seen.1 += 1;
                }
                (BlockState::Used { references: 0 }, _) => {
                    return Err(format!("used block {index} has no references"));
                }
                (BlockState::Used { .. }, _) => seen.2 += 1,
            }
        }
        for &index in &self.free {
            if self.blocks.get(index as usize).map(|block| block.state) != Some(BlockState::Free) {
                return Err(format!("block {index} is in the free list but not free"));
            }
        }
        let counts = self.counts();
        if seen != (counts.free, counts.cached, counts.used)
            || counts.free + counts.cached + counts.used != counts.all
        {
            return Err(format!("{counts:?}, but blocks are (free, cached, used) = {seen:?}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn free_blocks_go_first_then_the_least_recently_used_without_its_digest() {
        let mut pool = BlockPool::new(3);
        let held: Vec<_> = (0..2).map(|_| pool.allocate().unwrap().block).collect();
        let (first, second) = (held[0].index(), held[1].index());
        for (n, block) in held.into_iter().enumerate() {
            pool.publish(&block, Digest(n as u128));
            pool.release(block);
        }
        // Used and released again, the first becomes the younger of the two.
        let again = pool.share(first).unwrap();
        pool.release(again);

        let fresh = pool.allocate().unwrap();
        assert_eq!(fresh.evicted, None);
        let oldest = pool.allocate().unwrap();
        assert_eq!((oldest.block.index(), oldest.evicted), (second, Some(Digest(1))));
        assert!(pool.share(second).is_none(), "an evicted block is not addressable");
        let last = pool.allocate().unwrap();
        assert_eq!((last.block.index(), last.evicted), (first, Some(Digest(0))));
        assert!(pool.allocate().is_none());
        for block in [fresh.block, oldest.block, last.block] {
            pool.release(block);
        }
        assert_eq!(pool.counts(), BlockCounts { free: 3, cached: 0, used: 0, all: 3 });
        pool.check().unwrap();
    }

    #[test]
    fn only_published_blocks_are_shared() {
        let mut pool = BlockPool::new(1);
        assert!(pool.share(0).is_none());
        assert!(pool.share(1).is_none());
        let block = pool.allocate().unwrap().block;
        assert!(pool.share(0).is_none());
        pool.release(block);
        pool.check().unwrap();
    }

    proptest! {
        /// Any sequence of calls keeps the states and exact reference counts of a plain model.
        #[test]
        fn counts_are_exact(size in 0u32..9, calls in prop::collection::vec((0u8..4, 0usize..64), 0..200)) {
            let mut pool = BlockPool::new(size);
            let mut held: Vec<BlockRef> = Vec::new();
            let mut names = 0;
            for (call, pick) in calls {
                match call {
                    0 => held.extend(pool.allocate().map(|allocation| allocation.block)),
                    1 => held.extend(pool.share(pick as u32 % (size + 1))),
                    2 if !held.is_empty() => {
                        let block = &held[pick % held.len()];
                        if pool.blocks[block.index() as usize].digest.is_none() {
                            pool.publish(block, Digest(names));
                            names += 1;
                        }
                    }
                    3 if !held.is_empty() => pool.release(held.swap_remove(pick % held.len())),
                    _ => {}
                }
                prop_assert_eq!(pool.check(), Ok(()));
                for (index, block) in pool.blocks.iter().enumerate() {
                    let references = held.iter().filter(|block| block.index() as usize == index).count();
                    let counted = match block.state {
                        BlockState::Used { references } => references,
                        _ => 0,
                    };
                    prop_assert_eq!(counted, references);
                }
            }
            held.into_iter().for_each(|block| pool.release(block));
            prop_assert_eq!(pool.available(), size as usize);
        }
    }
}
