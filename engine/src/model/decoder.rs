//! The decoder of all families (Llama: Touvron et al. 2023, arXiv:2302.13971), once for every backend.
//!
//! ```text
//! hidden = embedding[ids] · embedding_scale
//! for each layer:
//!     q, k, v = split(norm(hidden) · W_qkvᵀ + bias)
//!     q, k = head_norm(q), head_norm(k)           turned by their positions; k, v into the cache
//!     residual = hidden + post_norm(attention(q, cache) · W_oᵀ)
//!     n = norm(residual)
//!     hidden = residual + post_norm((act(n · W_gateᵀ) · (n · W_upᵀ)) · W_downᵀ)
//!         or, of experts, residual + Σ share · (act(n · W_gateᵀ) · (n · W_upᵀ)) · W_downᵀ over those that n chooses
//! logits = soft_cap(norm(hidden[wanted rows]) · W_outputᵀ)
//! ```
//!
//! Biases, norms of heads, post-norms and soft-caps are there where the model's family has them; how far attention sees
//! may differ from layer to layer. Activations are F32 between operators. Before integer weights they are quantised per
//! token: by the norm itself where one comes before the layer, otherwise by an operator of its own.

use super::buffers::{Buffers, OutputBuffers};
use super::capacity::Capacity;
use super::layer::{Heads, Layers};
use super::loader::Source;
use super::plans::Plans;
use super::queue::Queue;
use super::weights::Weights;
use crate::model_file::{MatrixFormat, ModelConfig, ModelFile};
use crate::runner::{ModelInfo, StepLimits};
use crate::{EngineOptions, LoadProgress, Result, WeightsFormat};
use halite_hal::{DeviceInfo, Stream};
use halite_kernels::embedding::{EmbeddingSpec, EmbeddingTable, TableFormat};
use halite_kernels::linear::Epilogue;
use halite_kernels::norm::NormSpec;
use halite_kernels::quantize::QuantizeSpec;
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
    embedding_scale: f32,
    logit_soft_cap: Option<f32>,
    pub(super) info: ModelInfo,
    pub(super) limits: StepLimits,
}

impl<B: Backend> Decoder<B> {
    /// Loads a file's model.
    pub(super) fn load(
        device: B,
        file: &dyn ModelFile,
        options: &EngineOptions,
        progress: &mut dyn FnMut(LoadProgress<'_>),
    ) -> Result<Self> {
        options.check()?;
        let config = file.config()?;
        let capacity = Capacity::new(&config, options)?;
        let (max_tokens, format) = (capacity.limits.max_tokens, options.weights);

        let mut stream = device.stream()?;
        device.cache_supports(&capacity.kv).require("cache", &device, &capacity.kv)?;
        let cache = device.kv_cache(&capacity.kv, capacity.kv_blocks)?;
        let plans = Plans::new(&device, &cache, &config, &capacity, format)?;
        let buffers = Buffers::new(&device, &config, format, max_tokens)?;
        let output_format = config.output_format(format);
        let output = OutputBuffers::new(&device, &config, output_format, capacity.max_output_rows)?;
        let source = Source { file, config: &config, format, cache: options.weights_cache.as_ref() };
        let weights = Weights::load(&device, &mut stream, source, progress)?;

        let norm = NormSpec::rms(config.norm_eps);
        stream.reserve(workspace(&device, &config, format, &capacity, &plans, &weights, &norm))?;

        let (embedding_scale, logit_soft_cap) = (config.embedding_scale, config.logit_soft_cap);
        let info = model_info(config, &capacity, format, &weights, device.info())?;
        let Capacity { limits, max_output_rows, .. } = capacity;
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
            embedding_scale,
            logit_soft_cap,
            info,
            limits,
        })
    }

    /// Runs the layers over the step's token ids; the hidden states stay in the first rows of `buffers.hidden`.
    pub(super) fn forward(&mut self, ids: &[i32]) -> Result<()> {
        let step = self.buffers.narrow(ids.len())?;
        step.ids.write(&mut self.stream, ids)?;
        let mut queue = Queue { device: &self.device, stream: &mut self.stream };
        let table = &self.weights.embedding;
        let spec = table.spec().with_scale(self.embedding_scale);
        queue.gather(&spec, table.as_argument(), &step.ids, &step.hidden)?;
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
            self.buffers.hidden.narrow(0, first..first + rows.len())?
        } else {
            // Rows of a table by their ids: the embedding operator, with the hidden states as its table.
            let ids: Vec<i32> = rows.iter().map(|&row| row as i32).collect();
            out.rows.write(&mut self.stream, &ids)?;
            let mut queue = Queue { device: &self.device, stream: &mut self.stream };
            let spec = EmbeddingSpec::new(TableFormat::Float(DType::F32));
            queue.gather(&spec, EmbeddingTable::Float(&self.buffers.hidden), &out.rows, &out.gathered)?;
            out.gathered
        };
        let mut queue = Queue { device: &self.device, stream: &mut self.stream };
        queue.norm(&self.norm, &x, &self.weights.final_norm, None, out.normed.norm_out())?;
        let epilogue = Epilogue { soft_cap: self.logit_soft_cap, ..Epilogue::default() };
        queue.linear(&out.normed, &self.weights.output, epilogue, &out.logits)?;
        Ok(out.logits)
    }
}

/// Scratch bytes of the largest step: what the operator has that takes most. The others have none, or it is their plans'.
fn workspace<B: Backend>(
    device: &B,
    config: &ModelConfig,
    format: WeightsFormat,
    capacity: &Capacity,
    plans: &Plans<B>,
    weights: &Weights<B>,
    norm: &NormSpec,
) -> u64 {
    let max_tokens = capacity.limits.max_tokens;
    let layers = weights.layers.iter().map(|layer| layer.workspace(device, plans, max_tokens));
    let attention = plans.kinds.iter().map(|kind| device.attention_workspace(&kind.attention));
    let output = device.linear_workspace(&weights.output, capacity.max_output_rows);
    let int8 = &QuantizeSpec::INT8_PER_TOKEN;
    let quantized = match MatrixFormat::of(format).quantizes_activations() {
        true => {
            let rows = |columns| device.quantize_workspace(int8, max_tokens, columns);
            let normed = device.norm_quantize_workspace(norm, int8, max_tokens, config.hidden);
            normed.max(rows(config.query_width())).max(rows(config.ffn))
        }
        false => 0,
    };
    layers.chain(attention).max().unwrap_or(0).max(output).max(quantized)
}

/// What a person asks for, once all is loaded.
fn model_info<B: Backend>(
    config: ModelConfig,
    capacity: &Capacity,
    format: WeightsFormat,
    weights: &Weights<B>,
    device: DeviceInfo,
) -> Result<ModelInfo> {
    let kv = &capacity.kv;
    Ok(ModelInfo {
        layers: config.layers,
        hidden: config.hidden,
        query_heads: config.query_heads,
        kv_heads: config.kv_heads,
        head_dim: config.head_dim,
        vocabulary: config.vocabulary,
        parameters: config.parameters(),
        context: capacity.context,
        model_context: config.context,
        weights: format,
        weight_bytes: weights.bytes,
        weights_restored: weights.restored,
        kv_format: kv.format,
        block_size: kv.block_size,
        kv_blocks: capacity.kv_blocks,
        kv_bytes: kv.cache_bytes(capacity.kv_blocks)?,
        device,
        architecture: config.architecture,
        name: config.name,
    })
}
