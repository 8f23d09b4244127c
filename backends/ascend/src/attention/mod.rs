//! Attention over blocks of the cache, by CANN's FusedInferAttentionScore.
//!
//! `runs` tells rows that see something from those that do not, and finds sequences that go into one call; `plan` has a step's
//! lengths and its table; `call` is one layer.

mod call;
mod plan;
mod runs;

use halite_hal::{DType, Result};
use halite_kernels::{
    Checked, Support,
    attention::{
        Attention, AttentionArgs, AttentionCapacity, AttentionCompute, AttentionLimits, AttentionMergeArgs,
        AttentionMergeSpec, AttentionSpec, AttentionStep, Mask, Sinks,
    },
    cache::{KvCacheOps, KvFormat},
};

use crate::{
    device::Ascend,
    runtime::Operator,
    stream::AscendStream,
    support::{by, unsupported},
};

pub use plan::AscendAttentionPlan;

/// Slots of a block: the one size that every release takes with every step, and that serves in the field. Others are documented
/// for some releases and steps, and gave wrong numbers there (sgl-project/sglang, issue 38196).
const BLOCK_SIZE: usize = 128;
/// Heads are multiples of this, up to [`MOST_WIDTH`].
const WIDTH_STEP: usize = 16;
const MOST_WIDTH: usize = 512;
const MOST_HEADS: usize = 256;
const MOST_GROUP: usize = 64;
/// Elements of a position's heads.
const MOST_ROW: usize = 65_535;

/// Why partial results are not merged.
const NO_MERGE: &str =
    "CANN has no operator that merges results, and the backend does not call elementwise exponentials";

impl Attention for Ascend {
    type AttentionPlan = AscendAttentionPlan;

    fn attention_supports(&self, spec: &AttentionSpec) -> Support {
        match refusal(spec) {
            Some(reason) => Support::No(reason),
            // Queries and results may have gaps, and CANN's document does not say that they may.
            None => by(self, &[Operator::FusedInferAttention, Operator::InplaceCopy]),
        }
    }

    fn attention_plan(
        &self,
        spec: &AttentionSpec,
        capacity: &AttentionCapacity,
    ) -> Result<AscendAttentionPlan> {
        spec.check()?;
        self.attention_supports(spec).require("attention", self, spec)?;
        let cache = self.cache_supports(&spec.kv);
        cache.require("attention", self, spec)?;
        spec.kv.cache_bytes(capacity.cache_blocks)?;
        AscendAttentionPlan::new(self, spec, capacity)
    }

    fn attention_workspace(&self, plan: &AscendAttentionPlan) -> u64 {
        call::workspace(plan)
    }

    fn attention_update(
        &self,
        stream: &mut AscendStream,
        plan: &mut AscendAttentionPlan,
        step: &Checked<AttentionStep<'_>, AttentionLimits>,
    ) -> Result<()> {
        plan.update(stream, step)
    }

    fn attention(&self, stream: &mut AscendStream, args: Checked<AttentionArgs<'_, Self>>) -> Result<()> {
        call::run(stream, &args)
    }

    fn attention_merge_supports(&self, _: &AttentionMergeSpec) -> Support {
        Support::No(NO_MERGE.to_owned())
    }

    fn attention_merge(
        &self,
        _: &mut AscendStream,
        args: Checked<AttentionMergeArgs<'_, Self>>,
    ) -> Result<()> {
        Err(unsupported("attention_merge", NO_MERGE, args.spec))
    }
}

/// What of a specification CANN's operator does not do, or not in every release.
fn refusal(spec: &AttentionSpec) -> Option<String> {
    let kv = &spec.kv;
    let dims = (kv.head_dim, kv.value_head_dim);
    if !matches!(spec.dtype, DType::F16 | DType::Bf16) {
        return Some(format!("queries of {}: only F16 and BF16", spec.dtype));
    }
    if kv.format != KvFormat::Float(spec.dtype) {
        return Some(format!(
            "{} queries over {} keys and values: only those of one type",
            spec.dtype, kv.format
        ));
    }
    if spec.compute != AttentionCompute::Float {
        return Some(format!("{:?}: only sums of floats", spec.compute));
    }
    // Of windows CANN's documents say that they have no effect where a sequence has one row.
    if !matches!(spec.mask, Mask::Causal | Mask::Bidirectional) {
        return Some(format!("{:?}: only causal and bidirectional masks", spec.mask));
    }
    if spec.soft_cap.is_some() || spec.alibi_slopes.is_some() || spec.sinks != Sinks::None {
        return Some("soft-caps, biases and sinks: none of them".to_owned());
    }
    if kv.block_size != BLOCK_SIZE {
        return Some(format!("blocks of {}: only of {BLOCK_SIZE}", kv.block_size));
    }
    if dims.0 != dims.1 || !dims.0.is_multiple_of(WIDTH_STEP) || dims.0 > MOST_WIDTH {
        return Some(format!(
            "heads of {} and {}: only equal multiples of {WIDTH_STEP} up to {MOST_WIDTH}",
            dims.0, dims.1
        ));
    }
    let (heads, row) = (spec.query_heads, kv.kv_heads.saturating_mul(dims.0));
    if heads > MOST_HEADS || spec.group() > MOST_GROUP || row > MOST_ROW {
        return Some(format!(
            "{heads} heads on {} of {}: at most {MOST_HEADS}, {MOST_GROUP} on one, and {MOST_ROW} elements of a key",
            kv.kv_heads, dims.0
        ));
    }
    None
}
