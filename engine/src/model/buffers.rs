//! The decoder's working memory: allocated once for the largest step, narrowed to each.

use super::plans::no_experts;
use crate::model_file::{MatrixFormat, ModelConfig};
use crate::{Result, WeightsFormat};
use halite_kernels::linear::Activations;
use halite_kernels::moe::RoutingSpec;
use halite_kernels::norm::NormOut;
use halite_kernels::quantize::{QuantizeOut, QuantizeSpec};
use halite_kernels::{Backend, DType, Tensor};

/// The rows that a linear layer reads, in the form that goes with its weights.
#[derive(Clone)]
pub(super) enum Input<B: Backend> {
    /// F32 `[rows, columns]`.
    Float(Tensor<B>),
    /// I8 `[rows, columns]` and F32 `[rows]`.
    Int8 { q: Tensor<B>, scales: Tensor<B> },
}

impl<B: Backend> Input<B> {
    /// Memory for the form that goes with `format`.
    fn new(device: &B, format: MatrixFormat, rows: usize, columns: usize) -> Result<Self> {
        Ok(match format.quantizes_activations() {
            true => Self::Int8 {
                q: Tensor::new(device, DType::I8, &[rows, columns])?,
                scales: Tensor::new(device, DType::F32, &[rows])?,
            },
            false => Self::Float(Tensor::new(device, DType::F32, &[rows, columns])?),
        })
    }

    /// As [`Self::new`], but where the form is float it is `x` itself.
    fn of(device: &B, format: MatrixFormat, x: &Tensor<B>) -> Result<Self> {
        match format.quantizes_activations() {
            true => Self::new(device, format, x.dims()[0], x.dims()[1]),
            false => Ok(Self::Float(x.clone())),
        }
    }

    pub(super) fn narrow(&self, rows: usize) -> Result<Self> {
        Ok(match self {
            Self::Float(x) => Self::Float(x.narrow(0, 0..rows)?),
            Self::Int8 { q, scales } => {
                Self::Int8 { q: q.narrow(0, 0..rows)?, scales: scales.narrow(0, 0..rows)? }
            }
        })
    }

    pub(super) fn activations(&self) -> Activations<'_, B> {
        match self {
            Self::Float(x) => Activations::Float(x),
            Self::Int8 { q, scales } => Activations::int8_per_token(q, scales),
        }
    }

    pub(super) fn norm_out(&self) -> NormOut<'_, B> {
        match self {
            Self::Float(x) => NormOut::Float(x),
            Self::Int8 { q, scales } => {
                NormOut::Quantized { spec: &QuantizeSpec::INT8_PER_TOKEN, out: QuantizeOut::new(q, scales) }
            }
        }
    }
}

/// What the layers of a step work in; the first dimension is the step's tokens.
pub(super) struct Buffers<B: Backend> {
    /// I32 `[tokens]`.
    pub(super) ids: Tensor<B>,
    /// The hidden states, before a layer and after it: F32 `[tokens, hidden]`.
    pub(super) hidden: Tensor<B>,
    /// The same between attention and feed-forward. A residual and its output must be apart, hence two.
    pub(super) residual: Tensor<B>,
    /// What a norm gives: `[tokens, hidden]`.
    pub(super) normed: Input<B>,
    /// Queries, keys and values side by side: F32 `[tokens, query + 2 · kv]`.
    pub(super) qkv: Tensor<B>,
    /// Queries and keys after their norms, side by side: F32 `[tokens, query + kv]`. Of models that have such norms.
    pub(super) normed_heads: Option<Tensor<B>>,
    /// What attention gives: F32 `[tokens, query]`.
    pub(super) attn_out: Tensor<B>,
    /// The same, as the layer after it reads it.
    pub(super) attn_out_input: Input<B>,
    /// What the gated layer gives: F32 `[tokens, ffn]`.
    pub(super) ffn_act: Tensor<B>,
    /// The same, as the layer after it reads it.
    pub(super) ffn_act_input: Input<B>,
    /// What attention or feed-forward gives before its norm: F32 `[tokens, hidden]`. Of models that have such norms.
    pub(super) branch: Option<Tensor<B>>,
    /// Of mixtures of experts.
    pub(super) experts: Option<ExpertBuffers<B>>,
}

/// What a mixture of experts works in, beside its plan; the first dimension is the step's tokens.
pub(super) struct ExpertBuffers<B: Backend> {
    /// What the norm gives, F32 whatever the weights are: `[tokens, hidden]`.
    pub(super) normed: Tensor<B>,
    /// F32 `[tokens, experts]`.
    pub(super) logits: Tensor<B>,
    /// I32 `[tokens, per_token]`.
    pub(super) ids: Tensor<B>,
    /// F32 `[tokens, per_token]`.
    pub(super) weights: Tensor<B>,
}

impl<B: Backend> ExpertBuffers<B> {
    fn new(device: &B, hidden: usize, routing: &RoutingSpec, tokens: usize) -> Result<Self> {
        let chosen = [tokens, routing.top_k];
        Ok(Self {
            normed: Tensor::new(device, DType::F32, &[tokens, hidden])?,
            logits: Tensor::new(device, DType::F32, &[tokens, routing.experts])?,
            ids: Tensor::new(device, DType::I32, &chosen)?,
            weights: Tensor::new(device, DType::F32, &chosen)?,
        })
    }

    fn narrow(&self, tokens: usize) -> Result<Self> {
        Ok(Self {
            normed: self.normed.narrow(0, 0..tokens)?,
            logits: self.logits.narrow(0, 0..tokens)?,
            ids: self.ids.narrow(0, 0..tokens)?,
            weights: self.weights.narrow(0, 0..tokens)?,
        })
    }
}

impl<B: Backend> Buffers<B> {
    pub(super) fn new(
        device: &B,
        config: &ModelConfig,
        format: WeightsFormat,
        tokens: usize,
    ) -> Result<Self> {
        let f32 = |columns: usize| Tensor::new(device, DType::F32, &[tokens, columns]);
        let matrices = MatrixFormat::of(format);
        let (attn_out, ffn_act) = (f32(config.query_width())?, f32(config.ffn)?);
        Ok(Self {
            ids: Tensor::new(device, DType::I32, &[tokens])?,
            hidden: f32(config.hidden)?,
            residual: f32(config.hidden)?,
            normed: Input::new(device, matrices, tokens, config.hidden)?,
            qkv: f32(config.query_width() + 2 * config.kv_width())?,
            normed_heads: config
                .head_norms
                .then(|| f32(config.query_width() + config.kv_width()))
                .transpose()?,
            attn_out_input: Input::of(device, matrices, &attn_out)?,
            attn_out,
            ffn_act_input: Input::of(device, matrices, &ffn_act)?,
            ffn_act,
            branch: config.post_norms.then(|| f32(config.hidden)).transpose()?,
            experts: config
                .experts
                .as_ref()
                .map(|routing| ExpertBuffers::new(device, config.hidden, routing, tokens))
                .transpose()?,
        })
    }

    /// What experts work in.
    pub(super) fn of_experts(&self) -> Result<&ExpertBuffers<B>> {
        self.experts.as_ref().ok_or_else(|| no_experts().into())
    }

    /// The first `tokens` rows of everything.
    pub(super) fn narrow(&self, tokens: usize) -> Result<Self> {
        let rows = |tensor: &Tensor<B>| tensor.narrow(0, 0..tokens);
        Ok(Self {
            ids: rows(&self.ids)?,
            hidden: rows(&self.hidden)?,
            residual: rows(&self.residual)?,
            normed: self.normed.narrow(tokens)?,
            qkv: rows(&self.qkv)?,
            normed_heads: self.normed_heads.as_ref().map(rows).transpose()?,
            attn_out: rows(&self.attn_out)?,
            attn_out_input: self.attn_out_input.narrow(tokens)?,
            ffn_act: rows(&self.ffn_act)?,
            ffn_act_input: self.ffn_act_input.narrow(tokens)?,
            branch: self.branch.as_ref().map(rows).transpose()?,
            experts: self.experts.as_ref().map(|experts| experts.narrow(tokens)).transpose()?,
        })
    }
}

/// What the output layer works in; the first dimension is the rows whose logits are wanted.
pub(super) struct OutputBuffers<B: Backend> {
    /// I32 `[rows]`: which rows of the hidden states.
    pub(super) rows: Tensor<B>,
    /// F32 `[rows, hidden]`: those rows.
    pub(super) gathered: Tensor<B>,
    /// `[rows, hidden]`.
    pub(super) normed: Input<B>,
    /// F32 `[rows, vocabulary]`.
    pub(super) logits: Tensor<B>,
    /// I32 `[rows]`: tokens drawn, or tokens whose log-probability is wanted.
    pub(super) tokens: Tensor<B>,
    /// F32 `[rows]`.
    pub(super) log_probs: Tensor<B>,
}

impl<B: Backend> OutputBuffers<B> {
    pub(super) fn new(device: &B, config: &ModelConfig, format: MatrixFormat, rows: usize) -> Result<Self> {
        Ok(Self {
            rows: Tensor::new(device, DType::I32, &[rows])?,
            gathered: Tensor::new(device, DType::F32, &[rows, config.hidden])?,
            normed: Input::new(device, format, rows, config.hidden)?,
            logits: Tensor::new(device, DType::F32, &[rows, config.vocabulary])?,
            tokens: Tensor::new(device, DType::I32, &[rows])?,
            log_probs: Tensor::new(device, DType::F32, &[rows])?,
        })
    }

    /// The first `rows` rows of everything.
    pub(super) fn narrow(&self, rows: usize) -> Result<Self> {
        let first = |tensor: &Tensor<B>| tensor.narrow(0, 0..rows);
        Ok(Self {
            rows: first(&self.rows)?,
            gathered: first(&self.gathered)?,
            normed: self.normed.narrow(rows)?,
            logits: first(&self.logits)?,
            tokens: first(&self.tokens)?,
            log_probs: first(&self.log_probs)?,
        })
    }
}
