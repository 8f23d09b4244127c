//! Finds published blocks by their contents.
//!
//! A digest only finds a candidate. An entry answers to it if its tokens are equal and its parent is the very entry
//! matched before it (or, at the start, its domain is equal); by induction the whole history is then equal, whatever
//! the hash. A collision costs a missed reuse, never a wrong one.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::block_hash::{CacheDomain, Digest};

/// One publication. Never given twice, so a block that is evicted and filled anew is not mistaken for its old self.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PublicationId(u64);

/// What stands before a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Parent {
    /// Nothing: it is the first block of a prompt in this domain.
    Domain(Arc<CacheDomain>),
    /// The block published as this.
    Block(PublicationId),
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) block: u32,
    pub(super) publication: PublicationId,
    pub(super) parent: Parent,
    tokens: Box<[u32]>,
}

/// What [`PrefixCache::publish`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Published {
    /// The contents were new and are now found in the caller's block.
    New(PublicationId),
    /// Equal contents are already in `block`.
    Already { block: u32, publication: PublicationId },
    /// Other contents have this digest; nothing was published.
    Collision,
}

/// Published blocks by digest: one entry for each block of the pool that has a digest.
#[derive(Debug, Default)]
pub(super) struct PrefixCache {
    pub(super) entries: BTreeMap<Digest, Entry>,
    published: u64,
}

impl PrefixCache {
    /// The block that holds `tokens` after `parent`, and its publication.
    pub(super) fn find(
        &self,
        digest: Digest,
        parent: &Parent,
        tokens: &[u32],
    ) -> Option<(u32, PublicationId)> {
        let entry = self.entries.get(&digest)?;
        (entry.parent == *parent && *entry.tokens == *tokens).then_some((entry.block, entry.publication))
    }

    /// Makes the full `block` findable as `tokens` after `parent`. Its KV must have been written.
    pub(super) fn publish(
        &mut self,
        digest: Digest,
        parent: &Parent,
        tokens: &[u32],
        block: u32,
    ) -> Published {
        if let Some((block, publication)) = self.find(digest, parent, tokens) {
            return Published::Already { block, publication };
        }
        if self.entries.contains_key(&digest) {
            return Published::Collision;
        }
        let publication = PublicationId(self.published);
        self.published += 1;
        self.entries
            .insert(digest, Entry { block, publication, parent: parent.clone(), tokens: tokens.into() });
        Published::New(publication)
    }

    /// Forgets the contents of an evicted block.
    pub(super) fn remove(&mut self, digest: Digest) {
        self.entries.remove(&digest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain(tenant: &str) -> Parent {
        Parent::Domain(Arc::new(CacheDomain::new().tenant(tenant)))
    }

    /// Every digest equal: the worst hash there is must still never give another history's block.
    #[test]
    fn a_collision_is_a_miss() {
        let digest = Digest(0);
        let mut cache = PrefixCache::default();
        let Published::New(first) = cache.publish(digest, &domain("a"), &[1, 2], 5) else {
            panic!("not new")
        };
        let already = Published::Already { block: 5, publication: first };
        assert_eq!(cache.publish(digest, &domain("a"), &[1, 2], 6), already);
        let others: [(Parent, &[u32]); 4] = [
            (domain("b"), &[1, 2]),
            (domain("a"), &[1, 3]),
            (domain("a"), &[1]),
            (Parent::Block(first), &[1, 2]),
        ];
        for (parent, tokens) in others {
            assert_eq!(cache.find(digest, &parent, tokens), None, "{parent:?} {tokens:?}");
            assert_eq!(
                cache.publish(digest, &parent, tokens, 7),
                Published::Collision,
                "{parent:?} {tokens:?}"
            );
        }
        assert_eq!(cache.find(digest, &domain("a"), &[1, 2]), Some((5, first)));
    }

    /// A child of an evicted block is not found through a block published later in its place.
    #[test]
    fn publications_are_never_reused() {
        let (parent_digest, child_digest) = (Digest(1), Digest(2));
        let mut cache = PrefixCache::default();
        let Published::New(old) = cache.publish(parent_digest, &domain("a"), &[1], 0) else {
            panic!("not new")
        };
        cache.publish(child_digest, &Parent::Block(old), &[2], 1);
        cache.remove(parent_digest);
        let Published::New(new) = cache.publish(parent_digest, &domain("a"), &[1], 0) else {
            panic!("not new")
        };
        assert_eq!(cache.find(child_digest, &Parent::Block(new), &[2]), None);
    }
}
