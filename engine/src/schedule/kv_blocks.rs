//! The pool and the prefix cache together, and the block table of one sequence.

use std::sync::Arc;

use super::block_hash::{CacheDomain, CacheKey, Digest};
use super::block_pool::{BlockCounts, BlockPool, BlockRef, BlockState};
use super::config::{PrefixCaching, SchedulerConfig};
use super::prefix_cache::{Parent, PrefixCache, PublicationId, Published};
use super::request::PrefixReuse;

/// The blocks of one sequence, in the order of its tokens.
#[derive(Debug)]
pub(super) struct BlockTable {
    pub(super) blocks: Vec<BlockRef>,
    domain: Arc<CacheDomain>,
    reuse: PrefixReuse,
    /// How many of the first blocks are published or attached: shareable, and so never written again.
    published: usize,
    /// What the next block to publish stands after.
    tip: Parent,
    /// The digests of the first full blocks. They depend on nothing but tokens and domain, so they outlive the blocks.
    digests: Vec<Digest>,
}

impl BlockTable {
    pub(super) fn new(domain: CacheDomain, reuse: PrefixReuse) -> Self {
        let domain = Arc::new(domain);
        let tip = Parent::Domain(domain.clone());
        Self { blocks: Vec::new(), domain, reuse, published: 0, tip, digests: Vec::new() }
    }

    /// The digest of full block `index` of `tokens`, computed once.
    fn digest(&mut self, key: &CacheKey, index: usize, tokens: &[u32], block_size: usize) -> Digest {
        while self.digests.len() <= index {
            let parent = self.digests.last().copied().unwrap_or_else(|| key.root(&self.domain));
            let start = self.digests.len() * block_size;
            self.digests.push(key.block(parent, &tokens[start..start + block_size]));
        }
        self.digests[index]
    }
}

/// Cached blocks that begin with a sequence's tokens.
#[derive(Debug, Default)]
pub(super) struct PrefixMatch {
    blocks: Vec<(u32, PublicationId)>,
    /// Matched blocks that somebody uses already: reusing them takes nothing from the pool.
    pub(super) used: usize,
}

#[derive(Debug)]
struct KeyedPrefixes {
    key: CacheKey,
    cache: PrefixCache,
}

/// All KV blocks of a model.
#[derive(Debug)]
pub(super) struct KvBlocks {
    pub(super) pool: BlockPool,
    pub(super) block_size: usize,
    prefixes: Option<KeyedPrefixes>,
}

impl KvBlocks {
    pub(super) fn new(config: &SchedulerConfig) -> Self {
        let prefixes = match &config.prefix_caching {
            PrefixCaching::Off => None,
            PrefixCaching::Keyed(key) => {
                Some(KeyedPrefixes { key: key.clone(), cache: PrefixCache::default() })
            }
        };
        Self { pool: BlockPool::new(config.blocks), block_size: config.block_size, prefixes }
    }

    pub(super) fn available(&self) -> usize {
        self.pool.available()
    }

    pub(super) fn counts(&self) -> BlockCounts {
        self.pool.counts()
    }

    pub(super) fn prefix_cache(&self) -> Option<&PrefixCache> {
        self.prefixes.as_ref().map(|prefixes| &prefixes.cache)
    }

    /// Adds one block to the end of `table`. False: every block is used.
    pub(super) fn grow(&mut self, table: &mut BlockTable) -> bool {
        let Some(allocation) = self.pool.allocate() else { return false };
        if let (Some(digest), Some(prefixes)) = (allocation.evicted, &mut self.prefixes) {
            prefixes.cache.remove(digest);
        }
        table.blocks.push(allocation.block);
        true
    }

    /// The longest run of cached blocks `tokens` begins with, short of its last token, whose logits are still wanted.
    pub(super) fn find_prefix(&self, table: &mut BlockTable, tokens: &[u32]) -> PrefixMatch {
        let mut found = PrefixMatch::default();
        let (Some(KeyedPrefixes { key, cache }), PrefixReuse::On) = (&self.prefixes, table.reuse) else {
            return found;
        };
        let mut parent = Parent::Domain(table.domain.clone());
        let reusable = &tokens[..tokens.len().saturating_sub(1)];
        for (index, contents) in reusable.chunks_exact(self.block_size).enumerate() {
            let digest = table.digest(key, index, tokens, self.block_size);
            let Some((block, publication)) = cache.find(digest, &parent, contents) else { break };
            if let BlockState::Used { .. } = self.pool.blocks[block as usize].state {
                found.used += 1;
            }
            found.blocks.push((block, publication));
            parent = Parent::Block(publication);
        }
        found
    }

    /// Puts the matched blocks at the start of an empty `table`; returns how many tokens they hold.
    pub(super) fn attach(&mut self, table: &mut BlockTable, found: PrefixMatch) -> usize {
        for (block, publication) in found.blocks {
            let Some(block) = self.pool.share(block) else { break };
            table.blocks.push(block);
            table.published += 1;
            table.tip = Parent::Block(publication);
        }
        table.published * self.block_size
    }

    /// Publishes the blocks that the first `computed` of `tokens` fill. The step that wrote them must have completed.
    ///
    /// Where somebody else published the same contents first, the table goes over to that block and gives its own
    /// back. So whoever holds a block also holds the published blocks before it, a block is never evicted before
    /// those that follow it, and nothing in the cache is out of reach.
    pub(super) fn publish(&mut self, table: &mut BlockTable, tokens: &[u32], computed: usize) {
        let (Some(KeyedPrefixes { key, cache }), PrefixReuse::On) = (&mut self.prefixes, table.reuse) else {
            return;
        };
        let size = self.block_size;
        while table.published < (computed / size).min(table.blocks.len()) {
            let index = table.published;
            let digest = table.digest(key, index, tokens, size);
            let contents = &tokens[index * size..(index + 1) * size];
            let own = &mut table.blocks[index];
            let publication = match cache.publish(digest, &table.tip, contents, own.index()) {
                Published::New(publication) => {
                    self.pool.publish(own, digest);
                    publication
                }
                Published::Already { block, publication } => {
                    let Some(first) = self.pool.share(block) else { return };
                    self.pool.release(std::mem::replace(own, first));
                    publication
                }
                // The block stays private, and those after it, which could not be reached without it.
                Published::Collision => return,
            };
            table.tip = Parent::Block(publication);
            table.published += 1;
        }
    }

    /// Gives every block of `table` back, last first, so that the end of a prefix is evicted before its start.
    pub(super) fn release(&mut self, table: &mut BlockTable) {
        for block in table.blocks.drain(..).rev() {
            self.pool.release(block);
        }
        table.published = 0;
        table.tip = Parent::Domain(table.domain.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(kv: &mut KvBlocks, blocks: usize) -> BlockTable {
        let mut table = BlockTable::new(CacheDomain::new(), PrefixReuse::On);
        (0..blocks).for_each(|_| assert!(kv.grow(&mut table)));
        table
    }

    /// With a hash that gives everything the same digest, less is shared, and never the wrong thing.
    #[test]
    fn colliding_digests_end_publication_and_match_nothing() {
        let config = SchedulerConfig::new(8, 2, 64).prefix_caching(CacheKey::from_bytes([0; 16]));
        let mut kv = KvBlocks::new(&config);
        let mut tables = [[1, 2, 3, 4, 5], [1, 9, 3, 4, 5]].map(|tokens| {
            let mut table = filled(&mut kv, 3);
            table.digests = vec![Digest(0); 2];
            kv.publish(&mut table, &tokens, 5);
            (table, tokens)
        });
        assert_eq!((tables[0].0.published, tables[1].0.published), (1, 0));
        for (table, _) in &mut tables {
            kv.release(table);
        }
        assert_eq!((kv.counts().cached, kv.counts().used), (1, 0));
        let [(first, tokens), (second, others)] = &mut tables;
        assert_eq!(kv.find_prefix(first, tokens).blocks.len(), 1);
        assert_eq!(kv.find_prefix(second, others).blocks.len(), 0);
        kv.pool.check().unwrap();
    }

    /// Of a prefix held by nobody, the end goes first: what stays can still be found from its start.
    #[test]
    fn a_prefix_is_evicted_from_its_end() {
        let config = SchedulerConfig::new(4, 2, 64).prefix_caching(CacheKey::from_bytes([0; 16]));
        let mut kv = KvBlocks::new(&config);
        let tokens = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        let mut table = filled(&mut kv, 4);
        kv.publish(&mut table, &tokens, 8);
        kv.release(&mut table);
        let mut other = BlockTable::new(CacheDomain::new(), PrefixReuse::On);
        for left in (0..4).rev() {
            assert_eq!(kv.find_prefix(&mut table, &tokens).blocks.len(), left + 1);
            assert!(kv.grow(&mut other));
            assert_eq!(kv.find_prefix(&mut table, &tokens).blocks.len(), left);
        }
        assert!(!kv.grow(&mut other), "all blocks are used");
        kv.release(&mut other);
        assert_eq!(kv.counts().free, 4);
    }
}
