//! The tables that are updated once a step.

use super::ModelConfig;
use super::capacity::Capacity;
use crate::Result;
use halite_kernels::Backend;
use halite_kernels::attention::{AttentionCapacity, AttentionSpec};
use halite_kernels::sampling::SamplingSpec;

/// The plans of a step's operators, and the memory that its block table is laid out in.
pub(super) struct Plans<B: Backend> {
    pub(super) slots: B::Slots,
    pub(super) rope: B::RopePlan,
    pub(super) attention: B::AttentionPlan,
    pub(super) sampling: B::SamplingPlan,
    /// `[sequences, max_blocks_per_sequence]`, on the host.
    pub(super) block_table: Vec<i32>,
}

impl<B: Backend> Plans<B> {
    /// Plans for the largest step. What the device does not run is refused here, before weights are converted.
    pub(super) fn new(
        device: &B,
        cache: &B::KvCache,
        config: &ModelConfig,
        capacity: &Capacity,
    ) -> Result<Self> {
        let attention = AttentionSpec::causal(config.query_heads, capacity.kv.clone());
        let rope = config.rope(capacity.context);
        let sampling = SamplingSpec::new(config.vocabulary);
        device.attention_supports(&attention).require("attention", device, &attention)?;
        device.rope_supports(&rope).require("rope", device, &rope)?;
        device.sampling_supports(&sampling).require("sampling", device, &sampling)?;

        let max_tokens = capacity.limits.max_tokens;
        let largest = AttentionCapacity {
            max_tokens,
            max_sequences: capacity.limits.max_sequences,
            max_blocks_per_sequence: capacity.context.div_ceil(capacity.kv.block_size),
            cache_blocks: capacity.kv_blocks,
        };
        Ok(Self {
            slots: device.slots_plan(cache, max_tokens)?,
            rope: device.rope_plan(&rope, max_tokens)?,
            attention: device.attention_plan(&attention, &largest)?,
            sampling: device.sampling_plan(&sampling, capacity.max_output_rows)?,
            block_table: Vec::new(),
        })
    }
}
