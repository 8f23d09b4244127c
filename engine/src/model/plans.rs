//! The tables that are updated once a step.

use super::capacity::Capacity;
use super::weights::network_specs;
use crate::model_file::ModelConfig;
use crate::runner::MAX_LOGIT_BIASES;
use crate::{Result, WeightsFormat};
use halite_hal::Error;
use halite_kernels::Backend;
use halite_kernels::attention::AttentionCapacity;
use halite_kernels::logits::{LogitsCapacity, LogitsSpec};
use halite_kernels::moe::{ExpertsSpec, FeedForward, LocalExperts, RoutingSpec};
use halite_kernels::sampling::SamplingSpec;

/// The plans of a step's operators, and the memory that its block table is laid out in.
pub(super) struct Plans<B: Backend> {
    pub(super) slots: B::Slots,
    /// By kind of layer; see [`ModelConfig::attention_kinds`].
    pub(super) kinds: Vec<KindPlans<B>>,
    /// `[layers]`: which of `kinds` each has.
    layer_kinds: Vec<usize>,
    /// Blocks of a sequence: the row length of the block table.
    pub(super) max_blocks_per_sequence: usize,
    pub(super) logits: B::LogitsPlan,
    pub(super) sampling: B::SamplingPlan,
    /// Of mixtures of experts.
    pub(super) experts: Option<ExpertPlans<B>>,
    /// `[sequences, max_blocks_per_sequence]`, on the host.
    pub(super) block_table: Vec<i32>,
}

/// The error of a layer of experts in a model whose configuration has none.
pub(super) fn no_experts() -> Error {
    let (expected, got) = ("a mixture of experts".to_owned(), "a configuration without".to_owned());
    Error::Argument { operator: "step", argument: "experts", expected, got }
}

/// How tokens choose experts, and the memory that these work in.
pub(super) struct ExpertPlans<B: Backend> {
    pub(super) routing: RoutingSpec,
    pub(super) moe: B::MoePlan,
}

impl<B: Backend> ExpertPlans<B> {
    fn new(
        device: &B,
        config: &ModelConfig,
        routing: &RoutingSpec,
        format: WeightsFormat,
        tokens: usize,
    ) -> Result<Self> {
        // Experts of all layers have one format.
        let [gate_up, down] = network_specs(config, format, 0);
        let local = LocalExperts::all(routing.experts);
        let spec = ExpertsSpec::new(local, routing.top_k, FeedForward::new(gate_up, down));
        device.routing_supports(routing).require("routing", device, routing)?;
        device.moe_supports(&spec).require("moe", device, &spec)?;
        Ok(Self { routing: routing.clone(), moe: device.moe_plan(&spec, tokens)? })
    }
}

/// The plans of layers of one kind.
pub(super) struct KindPlans<B: Backend> {
    pub(super) rope: B::RopePlan,
    pub(super) attention: B::AttentionPlan,
}

impl<B: Backend> Plans<B> {
    /// Plans for the largest step. What the device does not run is refused here, before weights are converted.
    pub(super) fn new(
        device: &B,
        cache: &B::KvCache,
        config: &ModelConfig,
        capacity: &Capacity,
        format: WeightsFormat,
    ) -> Result<Self> {
        let sampling = SamplingSpec::new(capacity.drawn_tokens);
        device.sampling_supports(&sampling).require("sampling", device, &sampling)?;
        let logits = LogitsSpec::new(capacity.drawn_tokens);
        device.logits_supports(&logits).require("logits", device, &logits)?;
        // One row always has room; what more there are of long ones take turns.
        let adjusted = LogitsCapacity::rows(capacity.max_output_rows)
            .with_history(capacity.context)
            .with_biases(MAX_LOGIT_BIASES);
        let max_tokens = capacity.limits.max_tokens;
        let largest = AttentionCapacity {
            max_tokens,
            max_sequences: capacity.limits.max_sequences,
            max_blocks_per_sequence: capacity.context.div_ceil(capacity.kv.block_size),
            cache_blocks: capacity.kv_blocks,
        };
        let kinds = config.attention_kinds.iter().map(|kind| {
            let attention = config.attention(kind, capacity.kv.clone()).with_compute(capacity.compute);
            let rope = config.rope(kind, capacity.context);
            device.attention_supports(&attention).require("attention", device, &attention)?;
            device.rope_supports(&rope).require("rope", device, &rope)?;
            Ok(KindPlans {
                rope: device.rope_plan(&rope, max_tokens)?,
                attention: device.attention_plan(&attention, &largest)?,
            })
        });
        let experts = config.experts.as_ref();
        Ok(Self {
            experts: experts
                .map(|routing| ExpertPlans::new(device, config, routing, format, max_tokens))
                .transpose()?,
            slots: device.slots_plan(cache, max_tokens)?,
            kinds: kinds.collect::<Result<_>>()?,
            layer_kinds: config.layer_kinds.clone(),
            max_blocks_per_sequence: largest.max_blocks_per_sequence,
            logits: device.logits_plan(&logits, &adjusted)?,
            sampling: device.sampling_plan(&sampling, capacity.max_output_rows)?,
            block_table: Vec::new(),
        })
    }

    /// The plans of experts.
    pub(super) fn of_experts(&self) -> Result<&ExpertPlans<B>> {
        self.experts.as_ref().ok_or_else(|| no_experts().into())
    }

    /// The plans of a layer.
    pub(super) fn of_layer(&self, layer: usize) -> Result<&KindPlans<B>> {
        let kind = self.layer_kinds.get(layer).and_then(|&kind| self.kinds.get(kind));
        let expected = || format!("below {}", self.layer_kinds.len());
        let unknown = || Error::Argument {
            operator: "step",
            argument: "layer",
            expected: expected(),
            got: layer.to_string(),
        };
        Ok(kind.ok_or_else(unknown)?)
    }
}
