//! The decoder of the Llama family (Touvron et al. 2023, arXiv:2302.13971), once for every backend.
//!
//! ```text
//! x = embedding[ids]
//! for each layer:
//!     q, k, v = split(norm(x) · W_qkvᵀ)      q, k turned by their positions; k, v into the cache
//!     m = x + attention(q, cache) · W_oᵀ
//!     x = m + (silu(norm(m) · W_gateᵀ) · (norm(m) · W_upᵀ)) · W_downᵀ
//! logits = norm(x[wanted rows]) · W_outputᵀ
//! ```
//!
//! Activations are F32 between operators. Before W8A8 weights they are quantised per token: by the norm itself where
//! one comes before the layer, otherwise by an operator of its own.

use super::buffers::{Buffers, OutputBuffers};
use super::queue::Queue;
use super::weights::{LayerWeights, Weights};
use super::{ModelConfig, capacity};
use crate::gguf::GgufFile;
use crate::runner::{ModelInfo, StepLimits};
use crate::{EngineOptions, LoadProgress, Result};
use halite_hal::Stream;
use halite_kernels::attention::{AttentionArgs, AttentionCapacity, AttentionSpec};
use halite_kernels::cache::CacheWriteArgs;
use halite_kernels::embedding::{EmbeddingSpec, EmbeddingTable, TableFormat};
use halite_kernels::norm::NormSpec;
use halite_kernels::sampling::SamplingSpec;
use halite_kernels::{Backend, DType, Tensor};

/// A model on a device: weights, KV cache, plans and working memory.
pub(super) struct Decoder<B: Backend> {
    pub(super) device: B,
    pub(super) stream: B::Stream,
    pub(super) weights: Weights<B>,
    pub(super) cache: B::KvCache,
    pub(super) plans: Plans<B>,
    pub(super) buffers: Buffers<B>,
    pub(super) output: OutputBuffers<B>,
    pub(super) max_output_rows: usize,
    pub(super) norm: NormSpec,
    pub(super) info: ModelInfo,
    pub(super) limits: StepLimits,
}

/// The tables that are updated once a step.
pub(super) struct Plans<B: Backend> {
    pub(super) slots: B::Slots,
    pub(super) rope: B::RopePlan,
    pub(super) attention: B::AttentionPlan,
    pub(super) sampling: B::SamplingPlan,
}

impl<B: Backend> Decoder<B> {
    /// Loads a file's model.
    pub(super) fn load(
        device: B,
        file: &GgufFile,
        options: &EngineOptions,
        progress: &mut dyn FnMut(LoadProgress<'_>),
    ) -> Result<Self> {
        options.check()?;
        let config = ModelConfig::read(file)?;
        let context = capacity::context(&config, options)?;
        let kv = capacity::kv_spec(&config, options);
        let kv_blocks = capacity::kv_blocks(&kv, context, options)?;
        let (max_tokens, format) = (options.max_batch_tokens, options.weights);

        // What is refused should be refused before the weights are converted.
        let attention_spec = AttentionSpec::causal(config.query_heads, kv.clone());
        let rope_spec = config.rope(context);
        let sampling_spec = SamplingSpec::new(config.vocabulary);
        device.cache_supports(&kv).require("cache", &device, &kv)?;
        device.attention_supports(&attention_spec).require("attention", &device, &attention_spec)?;
        device.rope_supports(&rope_spec).require("rope", &device, &rope_spec)?;
        device.sampling_supports(&sampling_spec).require("sampling", &device, &sampling_spec)?;

        let mut stream = device.stream()?;
        let cache = device.kv_cache(&kv, kv_blocks)?;
        let max_output_rows = OutputBuffers::<B>::max_rows(&config, max_tokens);
        let attention_capacity = AttentionCapacity {
            max_tokens,
            max_sequences: options.max_sequences,
            max_blocks_per_sequence: context.div_ceil(options.block_size),
            cache_blocks: kv_blocks,
        };
        let plans = Plans {
            slots: device.slots_plan(&cache, max_tokens)?,
            rope: device.rope_plan(&rope_spec, max_tokens)?,
            attention: device.attention_plan(&attention_spec, &attention_capacity)?,
            sampling: device.sampling_plan(&sampling_spec, max_output_rows)?,
        };
        let buffers = Buffers::new(&device, &config, format, max_tokens)?;
        let output = OutputBuffers::new(&device, &config, format, max_output_rows)?;
        let weights = Weights::load(&device, &mut stream, file, &config, format, progress)?;

        let layers = weights.layers.iter();
        let linears =
            layers.flat_map(|layer| [&layer.qkv, &layer.attention_out, &layer.gate_up, &layer.down]);
        let largest = linears.map(|packed| device.linear_workspace(packed, max_tokens)).max().unwrap_or(0);
        let last = device.linear_workspace(&weights.output, max_output_rows);
        stream.reserve(largest.max(last).max(device.attention_workspace(&plans.attention)))?;

        let info = ModelInfo {
            layers: config.layers,
            hidden: config.hidden,
            query_heads: config.query_heads,
            kv_heads: config.kv_heads,
            head_dim: config.head_dim,
            vocabulary: config.vocabulary,
            parameters: weights.parameters,
            context,
            model_context: config.context,
            weights: format,
            weight_bytes: weights.bytes,
            kv_dtype: kv.dtype,
            block_size: kv.block_size,
            kv_blocks,
            kv_bytes: kv.cache_bytes(kv_blocks)?,
            device: device.info(),
            architecture: config.architecture,
            name: config.name,
        };
        let limits = StepLimits { max_tokens, max_sequences: options.max_sequences };
        let norm = NormSpec::rms(config.norm_eps);
        Ok(Self {
            device,
            stream,
            weights,
            cache,
            plans,
            buffers,
            output,
            max_output_rows,
            norm,
            info,
            limits,
        })
    }

    /// Runs the layers over the step's token ids; the hidden states stay in the first rows of `buffers.x`.
    pub(super) fn forward(&mut self, ids: &[i32]) -> Result<()> {
        let step = self.buffers.narrow(ids.len())?;
        step.ids.write(&mut self.stream, ids)?;
        let mut queue = Queue { device: &self.device, stream: &mut self.stream };
        let table = &self.weights.embedding;
        queue.gather(&table.spec(), table.as_argument(), &step.ids, &step.x)?;
        let heads = Heads::new(&step, &self.info)?;
        let layers = Layers { norm: &self.norm, plans: &self.plans, cache: &self.cache };
        for (layer, weights) in self.weights.layers.iter().enumerate() {
            layers.layer(&mut queue, layer, weights, &step, &heads)?;
        }
        Ok(())
    }

    /// The logits of some rows of the hidden states, at most `max_output_rows`: F32 `[rows, vocabulary]`.
    pub(super) fn logits(&mut self, rows: &[usize]) -> Result<Tensor<B>> {
        let out = self.output.narrow(rows.len())?;
        let first = rows.first().copied().unwrap_or(0);
        let side_by_side = rows.iter().enumerate().all(|(index, &row)| row == first + index);
        let x = if side_by_side {
            self.buffers.x.narrow(0, first..first + rows.len())?
        } else {
            // Rows of a table by their ids: the embedding operator, with the hidden states as its table.
            let ids: Vec<i32> = rows.iter().map(|&row| row as i32).collect();
            out.rows.write(&mut self.stream, &ids)?;
            let mut queue = Queue { device: &self.device, stream: &mut self.stream };
            let spec = EmbeddingSpec::new(TableFormat::Float(DType::F32));
            queue.gather(&spec, EmbeddingTable::Float(&self.buffers.x), &out.rows, &out.gathered)?;
            out.gathered
        };
        let mut queue = Queue { device: &self.device, stream: &mut self.stream };
        queue.norm(&self.norm, &x, &self.weights.final_norm, &out.normed)?;
        queue.linear(&out.normed, &self.weights.output, None, &out.logits)?;
        Ok(out.logits)
    }
}

/// Views of a step's queries, keys and values, `[tokens, heads, head_dim]`.
struct Heads<B: Backend> {
    q: Tensor<B>,
    k: Tensor<B>,
    v: Tensor<B>,
    /// Queries and keys: they lie side by side and turn in one call.
    qk: Tensor<B>,
    /// What attention gives.
    mixed: Tensor<B>,
}

impl<B: Backend> Heads<B> {
    fn new(step: &Buffers<B>, info: &ModelInfo) -> Result<Self> {
        let dim = info.head_dim;
        let (query, kv) = (info.query_heads * dim, info.kv_heads * dim);
        let part = |start: usize, width: usize| step.qkv.narrow(1, start..start + width)?.split_last(dim);
        Ok(Self {
            q: part(0, query)?,
            k: part(query, kv)?,
            v: part(query + kv, kv)?,
            qk: part(0, query + kv)?,
            mixed: step.mixed.split_last(dim)?,
        })
    }
}

/// What all layers of a step share.
struct Layers<'a, B: Backend> {
    norm: &'a NormSpec,
    plans: &'a Plans<B>,
    cache: &'a B::KvCache,
}

impl<B: Backend> Layers<'_, B> {
    /// One layer: from `step.x` to `step.x`.
    fn layer(
        &self,
        queue: &mut Queue<'_, B>,
        layer: usize,
        weights: &LayerWeights<B>,
        step: &Buffers<B>,
        heads: &Heads<B>,
    ) -> Result<()> {
        let (plans, cache) = (self.plans, self.cache);
        queue.norm(self.norm, &step.x, &weights.attention_norm, &step.normed)?;
        queue.linear(&step.normed, &weights.qkv, None, &step.qkv)?;
        queue.rope(&plans.rope, &heads.qk)?;
        queue.cache_write(CacheWriteArgs { slots: &plans.slots, cache, layer, k: &heads.k, v: &heads.v })?;
        queue.attention(AttentionArgs {
            plan: &plans.attention,
            cache,
            layer,
            q: &heads.q,
            out: &heads.mixed,
            log_sum_exp: None,
        })?;
        queue.quantize(&step.mixed, &step.mixed_input)?;
        queue.linear(&step.mixed_input, &weights.attention_out, Some(&step.x), &step.mid)?;

        queue.norm(self.norm, &step.mid, &weights.ffn_norm, &step.normed)?;
        queue.linear(&step.normed, &weights.gate_up, None, &step.gated)?;
        queue.quantize(&step.gated, &step.gated_input)?;
        queue.linear(&step.gated_input, &weights.down, Some(&step.mid), &step.x)
    }
}
