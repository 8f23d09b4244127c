//! What can be asked of attention.

use super::{CHECK, Mask};
use crate::cache::KvSpec;
use halite_hal::{DType, Result};

/// Which attention, over which cache.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AttentionSpec {
    /// Query heads; a multiple of the cache's KV heads.
    pub query_heads: usize,
    /// The cache.
    pub kv: KvSpec,
    /// Factor of the scores.
    pub scale: f32,
    /// Bounds the scores, after the scale and before the mask: `cap · tanh(score / cap)`; finite and above zero.
    pub soft_cap: Option<f32>,
    /// Which positions a row sees.
    pub mask: Mask,
    /// Type of queries and output.
    pub dtype: DType,
    /// Positions of a part; see the [family's text](super). A multiple of 16.
    pub kv_split: usize,
}

impl AttentionSpec {
    /// Causal attention over F32 queries, `scale = 1 / √head_dim`.
    pub fn causal(query_heads: usize, kv: KvSpec) -> Self {
        let scale = 1.0 / (kv.head_dim as f32).sqrt();
        let (mask, dtype) = (Mask::Causal, DType::F32);
        AttentionSpec { query_heads, kv, scale, soft_cap: None, mask, dtype, kv_split: 256 }
    }

    /// Another type of queries and output.
    pub fn with_dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }

    /// Another factor of the scores.
    pub fn with_scale(mut self, scale: f32) -> Self {
        self.scale = scale;
        self
    }

    /// Scores bounded by `±cap`.
    pub fn with_soft_cap(mut self, cap: f32) -> Self {
        self.soft_cap = Some(cap);
        self
    }

    /// Other visible positions.
    pub fn with_mask(mut self, mask: Mask) -> Self {
        self.mask = mask;
        self
    }

    /// Another part size.
    pub fn with_kv_split(mut self, kv_split: usize) -> Self {
        self.kv_split = kv_split;
        self
    }

    /// Query heads that share a KV head.
    pub fn group(&self) -> usize {
        self.query_heads / self.kv.kv_heads.max(1)
    }

    /// Checks that the specification makes sense: a backend calls it before it plans.
    ///
    /// # Errors
    /// Sizes or a window of zero, query heads that are no multiple of KV heads, a split that is no multiple of 16, a
    /// scale that is not finite, a soft-cap that is not finite and above zero.
    pub fn check(&self) -> Result<()> {
        self.kv.block_bytes()?;
        CHECK.positive("query_heads", self.query_heads)?;
        CHECK.that(
            self.query_heads.is_multiple_of(self.kv.kv_heads),
            "query_heads",
            format!("a multiple of {} KV heads", self.kv.kv_heads),
            self.query_heads,
        )?;
        let split = self.kv_split;
        CHECK.that(split > 0 && split.is_multiple_of(16), "kv_split", "a positive multiple of 16", split)?;
        CHECK.that(self.scale.is_finite(), "scale", "a finite number", self.scale)?;
        CHECK.soft_cap(self.soft_cap)?;
        self.mask.check()
    }
}
