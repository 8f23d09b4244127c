//! Attention over a paged KV cache: prefill, chunked prefill and decode, ragged, in one call.
//!
//! For query row `i` of a sequence with `q_len` query rows and `kv_len` cached positions, the row's own position is
//! `kv_len - q_len + i`; which positions it sees is the [`Mask`]'s. Query head `h` reads KV head
//! `h / (query_heads / kv_heads)`. With `s_j = scale · q·k_j` over the visible `j`, or
//! `s_j = cap · tanh(scale · q·k_j / cap)` with a soft-cap (Gemma 2, arXiv:2408.00118, section 2):
//! `out = Σ exp(s_j - m) v_j / Σ exp(s_j - m)`, and `log_sum_exp = ln Σ exp(s_j)`, natural (Vaswani et al. 2017,
//! arXiv:1706.03762; the running form: Milakov and Gimelshein 2018, arXiv:1805.02867). A row that sees no key is 0
//! with log-sum-exp -inf. Keys and values of the step itself are read from the cache, as it stores them.
//!
//! KV is cut at absolute multiples of [`AttentionSpec::kv_split`], each part starts from the empty state, and parts
//! are merged left to right: that is what makes a row's bits independent of batching and chunking.

use crate::{
    Checked, Support,
    cache::{KvCacheInfo, KvCacheOps, KvSpec},
    check::Check,
};
use halite_hal::{DType, Result, Tensor};

const CHECK: Check = Check("attention");

/// Which positions a query row sees. Keys and values at others, NaN included, do not reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mask {
    /// Positions up to its own.
    Causal,
    /// The last `window` positions up to its own, its own included: a row at position `p` sees the positions `q` with
    /// `p - window < q <= p` (Beltagy et al. 2020, arXiv:2004.05150; `sliding_window` of Hugging Face transformers).
    Sliding {
        /// Positions that a row sees at most; 1 or more.
        window: usize,
    },
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
    /// Type of queries and output.
    pub dtype: DType,
    /// Positions of a part; see the module's text. A multiple of 16.
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
        match self.mask {
            Mask::Causal => Ok(()),
            Mask::Sliding { window } => CHECK.positive("window", window),
        }
    }
}

/// The largest step that a plan serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AttentionCapacity {
    /// Query tokens of a step.
    pub max_tokens: usize,
    /// Sequences of a step.
    pub max_sequences: usize,
    /// Blocks of a sequence: the row length of the block table.
    pub max_blocks_per_sequence: usize,
    /// Blocks of the cache.
    pub cache_blocks: usize,
}

/// What a backend's plan tells of itself.
pub trait AttentionPlan {
    /// What it was planned for.
    fn spec(&self) -> &AttentionSpec;
    /// The largest step.
    fn capacity(&self) -> &AttentionCapacity;
    /// Query tokens of the current step.
    fn tokens(&self) -> usize;

    /// What a step is checked against.
    fn limits(&self) -> AttentionLimits {
        AttentionLimits { capacity: *self.capacity(), block_size: self.spec().kv.block_size }
    }
}

/// What an [`AttentionStep`] was checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttentionLimits {
    /// The largest step.
    pub capacity: AttentionCapacity,
    /// Token slots of a block.
    pub block_size: usize,
}

/// A step's lengths and block tables, on the host.
#[derive(Clone, Copy, Debug)]
pub struct AttentionStep<'a> {
    /// `[sequences + 1]`: query rows `cu_seqlens[s]..cu_seqlens[s + 1]` belong to sequence `s`.
    pub cu_seqlens: &'a [u32],
    /// `[sequences]`: cached positions of each sequence, the step's own included.
    pub kv_lens: &'a [u32],
    /// `[sequences, max_blocks_per_sequence]`: block ids; entries beyond a sequence's length are not read, and are -1
    /// by custom.
    pub block_table: &'a [i32],
}

impl AttentionStep<'_> {
    /// Checks lengths and ids against the plan.
    ///
    /// # Errors
    /// More tokens, sequences or blocks than planned, lengths that do not ascend, or a block beyond the cache.
    pub fn check(self, plan: &impl AttentionPlan) -> Result<Checked<Self, AttentionLimits>> {
        let limits @ AttentionLimits { capacity, block_size } = plan.limits();
        let sequences = self.kv_lens.len();
        CHECK.limit("sequences", sequences, capacity.max_sequences)?;
        CHECK.that(
            self.cu_seqlens.len() == sequences + 1 && self.cu_seqlens[0] == 0,
            "cu_seqlens",
            format!("{} offsets from 0 on", sequences + 1),
            self.cu_seqlens,
        )?;
        CHECK.that(self.cu_seqlens.is_sorted(), "cu_seqlens", "ascending offsets", self.cu_seqlens)?;
        CHECK.limit("tokens", self.tokens(), capacity.max_tokens)?;
        let row = capacity.max_blocks_per_sequence;
        let entries = sequences.saturating_mul(row);
        CHECK.that(
            self.block_table.len() == entries,
            "block_table",
            format!("{sequences} rows of {row}"),
            self.block_table.len(),
        )?;
        for (sequence, &kv_len) in self.kv_lens.iter().enumerate() {
            let blocks = (kv_len as usize).div_ceil(block_size);
            CHECK.limit("blocks of a sequence", blocks, row)?;
            let table = &self.block_table[sequence * row..][..blocks];
            if let Some(&block) = table.iter().find(|&&b| b < 0 || b as usize >= capacity.cache_blocks) {
                let expected = format!("sequence {sequence}'s blocks within 0..{}", capacity.cache_blocks);
                return Err(CHECK.wrong("block_table", expected, block.to_string()));
            }
        }
        Ok(Checked::with_context(self, limits))
    }

    /// Query tokens of the step.
    pub fn tokens(&self) -> usize {
        self.cu_seqlens.last().map_or(0, |&tokens| tokens as usize)
    }
}

/// One layer of a step.
#[derive(Clone, Debug)]
pub struct AttentionArgs<'a, B: Attention> {
    /// The plan, as last updated.
    pub plan: &'a B::AttentionPlan,
    /// The cache, with the step's keys and values already written.
    pub cache: &'a B::KvCache,
    /// Which layer of the cache.
    pub layer: usize,
    /// `[tokens, query_heads, head_dim]`; outer dimensions may be strided.
    pub q: &'a Tensor<B>,
    /// `[tokens, query_heads, value_head_dim]`; outer dimensions may be strided.
    pub out: &'a Tensor<B>,
    /// F32 `[tokens, query_heads]`, where it is wanted.
    pub log_sum_exp: Option<&'a Tensor<B>>,
}

impl<B: Attention> AttentionArgs<'_, B> {
    /// Checks shapes, types and the cache against the plan.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument.
    pub fn check(self) -> Result<Checked<Self>> {
        let (spec, tokens) = (self.plan.spec(), self.plan.tokens());
        CHECK.that(*self.cache.spec() == spec.kv, "cache", format!("{:?}", spec.kv), self.cache.spec())?;
        let blocks = self.plan.capacity().cache_blocks;
        CHECK.that(
            self.cache.blocks() >= blocks,
            "cache",
            format!("at least {blocks} blocks"),
            self.cache.blocks(),
        )?;
        CHECK.that(self.layer < spec.kv.layers, "layer", format!("below {}", spec.kv.layers), self.layer)?;
        CHECK.tensor("q", self.q, spec.dtype, &[tokens, spec.query_heads, spec.kv.head_dim])?;
        CHECK.tensor("out", self.out, spec.dtype, &[tokens, spec.query_heads, spec.kv.value_head_dim])?;
        CHECK.disjoint("out", self.out, &[("q", Some(self.q)), ("log_sum_exp", self.log_sum_exp)])?;
        if let Some(log_sum_exp) = self.log_sum_exp {
            CHECK.tensor("log_sum_exp", log_sum_exp, DType::F32, &[tokens, spec.query_heads])?;
            CHECK.disjoint("log_sum_exp", log_sum_exp, &[("q", Some(self.q))])?;
        }
        Ok(Checked::new(self))
    }
}

/// The family's trait.
pub trait Attention: KvCacheOps {
    /// Tables at stable addresses and the choice of kernels.
    type AttentionPlan: AttentionPlan + std::fmt::Debug + Send + 'static;

    /// Whether and how the backend runs `spec`.
    fn attention_supports(&self, spec: &AttentionSpec) -> Support;

    /// Plans for steps of up to `capacity`: allocates, once.
    ///
    /// # Errors
    /// A spec that makes no sense or is not supported, offsets beyond the backend's reach, or no memory.
    fn attention_plan(
        &self,
        spec: &AttentionSpec,
        capacity: &AttentionCapacity,
    ) -> Result<Self::AttentionPlan>;

    /// Scratch bytes of one call, exact, or a bound where a vendor decides.
    fn attention_workspace(&self, plan: &Self::AttentionPlan) -> u64;

    /// Uploads a step's lengths and tables: once a step.
    ///
    /// # Errors
    /// A step that was checked against another plan's capacity.
    fn attention_update(
        &self,
        stream: &mut Self::Stream,
        plan: &mut Self::AttentionPlan,
        step: &Checked<AttentionStep<'_>, AttentionLimits>,
    ) -> Result<()>;

    /// Runs one layer: allocates nothing, waits for nothing, reads nothing back.
    ///
    /// # Errors
    /// The device's.
    fn attention(&self, stream: &mut Self::Stream, args: Checked<AttentionArgs<'_, Self>>) -> Result<()>;
}
