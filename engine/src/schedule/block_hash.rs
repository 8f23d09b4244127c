//! Names for the contents of KV blocks: a chain of keyed digests, one per full block.

use std::fmt;

use crate::siphash::siphash_2_4_128;

/// The secret that keys the digests of cached blocks. Whoever cannot know it cannot prepare colliding prompts.
///
/// Make one per process from the operating system's randomness; a fixed one is for tests.
#[derive(Clone, PartialEq, Eq)]
pub struct CacheKey([u64; 2]);

impl CacheKey {
    /// A key from 16 secret bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        let key = u128::from_le_bytes(bytes);
        Self([key as u64, (key >> 64) as u64])
    }
}

impl fmt::Debug for CacheKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CacheKey(secret)")
    }
}

/// Who may share a cached prefix with whom, and what else than its tokens decides the KV of a block.
///
/// Two requests share blocks only if their domains are equal in every field. The fields are set by the server from
/// what it has authenticated, never copied from a client's request body. They are named, so a tenant called like an
/// adapter is still another domain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct CacheDomain {
    tenant: Option<String>,
    adapter: Option<String>,
}

impl CacheDomain {
    /// The domain of requests without tenant and adapter.
    pub fn new() -> Self {
        Self::default()
    }

    /// The tenant whose prompts these are: prefixes are never reused across tenants.
    #[must_use]
    pub fn tenant(mut self, tenant: impl Into<String>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// The low-rank adapter the KV is computed with: the same tokens have other KV under another.
    #[must_use]
    pub fn adapter(mut self, adapter: impl Into<String>) -> Self {
        self.adapter = Some(adapter.into());
        self
    }
}

/// A 128-bit name for a block and everything before it. Equal contents have equal digests; the converse is checked
/// by comparing tokens, never assumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Digest(pub(super) u128);

// The first byte of each message separates the two kinds, so no domain can imitate a block.
const DOMAIN: u8 = 0;
const BLOCK: u8 = 1;

impl CacheKey {
    /// The start of the chain: H(0 ‖ for each field: presence ‖ length ‖ bytes).
    pub(super) fn root(&self, domain: &CacheDomain) -> Digest {
        let mut message = vec![DOMAIN];
        for field in [&domain.tenant, &domain.adapter] {
            message.push(u8::from(field.is_some()));
            let text = field.as_deref().unwrap_or_default();
            message.extend((text.len() as u64).to_le_bytes());
            message.extend(text.as_bytes());
        }
        Digest(siphash_2_4_128(self.0, &message))
    }

    /// The next link: H(1 ‖ parent ‖ tokens). All blocks of a pool have the same size, so no length is needed.
    pub(super) fn block(&self, parent: Digest, tokens: &[u32]) -> Digest {
        let mut message = Vec::with_capacity(17 + 4 * tokens.len());
        message.push(BLOCK);
        message.extend(parent.0.to_le_bytes());
        message.extend(tokens.iter().flat_map(|token| token.to_le_bytes()));
        Digest(siphash_2_4_128(self.0, &message))
    }
}

#[cfg(test)]
mod tests {
    use super::{CacheDomain, CacheKey};

    #[test]
    fn fields_of_a_domain_are_not_interchangeable() {
        let key = CacheKey::from_bytes([7; 16]);
        let new = CacheDomain::new;
        let domains = [
            new(),
            new().tenant(""),
            new().tenant("a"),
            new().adapter("a"),
            new().tenant("ab"),
            new().tenant("a").adapter("b"),
            new().tenant("b").adapter("a"),
            new().tenant("").adapter("ab"),
        ];
        for (i, a) in domains.iter().enumerate() {
            for (j, b) in domains.iter().enumerate() {
                assert_eq!(key.root(a) == key.root(b), i == j, "{a:?} against {b:?}");
            }
        }
    }

    #[test]
    fn digests_depend_on_key_parent_tokens_and_order() {
        let (key, other) = (CacheKey::from_bytes([1; 16]), CacheKey::from_bytes([2; 16]));
        let root = key.root(&CacheDomain::new());
        let first = key.block(root, &[1, 2]);
        assert_eq!(first, key.block(root, &[1, 2]));
        assert_ne!(first, key.block(root, &[2, 1]));
        assert_ne!(first, key.block(first, &[1, 2]));
        assert_ne!(first, other.block(root, &[1, 2]));
        assert_ne!(root, other.root(&CacheDomain::new()));
    }

    #[test]
    fn the_debug_text_of_a_key_does_not_tell_it() {
        assert_eq!(format!("{:?}", CacheKey::from_bytes([0xab; 16])), "CacheKey(secret)");
    }
}
