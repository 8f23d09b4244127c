//! Attention over a paged KV cache: prefill, chunked prefill and decode, ragged, in one call.
//!
//! For query row `i` of a sequence with `q_len` query rows and `kv_len` cached positions, the row's own position is
//! `kv_len - q_len + i`; which positions it sees is the [`Mask`]'s. Query head `h` reads KV head
//! `h / (query_heads / kv_heads)`. With `s_j = scale · q·k_j` over the visible `j`, or
//! `s_j = cap · tanh(scale · q·k_j / cap)` with a soft-cap (Gemma 2, arXiv:2408.00118, section 2), in either case less
//! `slope_h · |j - p|` for a row at position `p` with linear biases (Press et al. 2021, arXiv:2108.12409; the paper's
//! rows see `j <= p` only):
//! `out = Σ exp(s_j - m) v_j / Σ exp(s_j - m)`, and `log_sum_exp = ln Σ exp(s_j)`, natural (Vaswani et al. 2017,
//! arXiv:1706.03762; the running form: Milakov and Gimelshein 2018, arXiv:1805.02867). A row that sees no key is 0
//! with log-sum-exp -inf. Keys and values of the step itself are read from the cache, as it stores them. That is in F32;
//! [`AttentionCompute`] has other arithmetic.
//!
//! A sink adds `exp(sink_h - m)` to the denominator and `exp(sink_h)` under the logarithm, and nothing else: a row that
//! sees no key is 0 with log-sum-exp `sink_h`. So a sink counts as a position whose value is 0, and results of several
//! calls are merged rightly when one of them, and only one, had the sinks.
//!
//! KV is cut at absolute multiples of [`AttentionSpec::kv_split`], each part starts from the empty state, and parts
//! are merged left to right: that is what makes a row's bits independent of batching and chunking. It also lets a call
//! stop between two parts and another go on ([`AttentionState`]): a prefix that requests share is read once for all of them, to the
//! same bits. [`attention_merge`](Attention::attention_merge) joins results of calls over any positions, within rounding.

mod alibi;
pub(crate) mod args;
mod compute;
pub mod cut;
mod mask;
mod merge;
mod spec;
pub(crate) mod state;
mod step;
pub mod visible;

pub use alibi::alibi_slopes;
pub use args::AttentionArgs;
pub use compute::{AttentionCompute, ValueProducts};
pub use mask::{Mask, OwnRows};
pub use merge::{AttentionMergeArgs, AttentionMergeSpec, AttentionPart};
pub use spec::{AttentionSpec, Sinks};
pub use state::{AttentionOut, AttentionState};
pub use step::{AttentionCapacity, AttentionLimits, AttentionStep};

use crate::{Checked, Support, cache::KvCacheOps, check::Check};
use halite_hal::Result;

const CHECK: Check = Check("attention");

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
        let spec = self.spec();
        AttentionLimits {
            capacity: *self.capacity(),
            block_size: spec.kv.block_size,
            kv_split: spec.kv_split,
            own_rows: spec.mask.own_rows(),
        }
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

    /// Whether and how the backend merges partial results.
    fn attention_merge_supports(&self, spec: &AttentionMergeSpec) -> Support;

    /// Merges partial results.
    ///
    /// # Errors
    /// A spec that is not supported, or the device's.
    fn attention_merge(
        &self,
        stream: &mut Self::Stream,
        args: Checked<AttentionMergeArgs<'_, Self>>,
    ) -> Result<()>;
}
