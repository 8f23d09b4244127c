//! What can be asked of attention.

use super::{AttentionCompute, CHECK, Mask};
use crate::cache::KvSpec;
use halite_hal::{DType, Result};

/// A term of the softmax's denominator that no position stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Sinks {
    /// None.
    #[default]
    None,
    /// A learned logit for each query head, [`AttentionArgs::sinks`](super::AttentionArgs::sinks) (gpt-oss; Xiao et al.
    /// 2023, arXiv:2309.17453, section 3.3, with a value of zero).
    PerHead,
}

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
    /// `[query_heads]`, where distance lowers scores: `slope · |j - p|` is taken from the score of position `j` for a row
    /// at position `p`, after the soft-cap. [`alibi_slopes`](super::alibi_slopes) are the usual ones.
    pub alibi_slopes: Option<Vec<f32>>,
    /// Whether the softmax has a term that no position stands for.
    pub sinks: Sinks,
    /// Type of queries and output.
    pub dtype: DType,
    /// In which arithmetic.
    pub compute: AttentionCompute,
    /// Positions of a part; see the [family's text](super). A multiple of 16.
    pub kv_split: usize,
}

impl AttentionSpec {
    /// Causal attention over F32 queries, `scale = 1 / √head_dim`.
    pub fn causal(query_heads: usize, kv: KvSpec) -> Self {
        let scale = 1.0 / (kv.head_dim as f32).sqrt();
        AttentionSpec {
            query_heads,
            kv,
            scale,
            soft_cap: None,
            mask: Mask::Causal,
            alibi_slopes: None,
            sinks: Sinks::None,
            dtype: DType::F32,
            compute: AttentionCompute::Float,
            kv_split: 256,
        }
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

    /// Scores lowered by distance: a slope for each query head.
    pub fn with_alibi_slopes(mut self, slopes: Vec<f32>) -> Self {
        self.alibi_slopes = Some(slopes);
        self
    }

    /// With terms in the denominator that no position stands for.
    pub fn with_sinks(mut self, sinks: Sinks) -> Self {
        self.sinks = sinks;
        self
    }

    /// Another arithmetic.
    pub fn with_compute(mut self, compute: AttentionCompute) -> Self {
        self.compute = compute;
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
    /// Sizes, a window or a chunk of zero, query heads that are no multiple of KV heads, a split that is no multiple of 16,
    /// a scale that is not finite, a soft-cap that is not finite and above zero, slopes that are not finite, not one for
    /// each query head, or beside a tree, whose rows have no distances; INT8 arithmetic over a cache of
    /// floats or with sums that i32 does not hold.
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
        self.compute.check(&self.kv, split)?;
        self.mask.check()?;
        let Some(slopes) = &self.alibi_slopes else { return Ok(()) };
        let heads = self.query_heads;
        CHECK.that(slopes.len() == heads, "alibi_slopes", format!("{heads} slopes"), slopes.len())?;
        let wrong = slopes.iter().find(|slope| !slope.is_finite());
        CHECK.none("alibi_slopes", "finite numbers", wrong)?;
        CHECK.that(self.mask != Mask::Tree, "alibi_slopes", "none with a tree", slopes)
    }
}
