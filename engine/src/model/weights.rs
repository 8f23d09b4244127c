//! A decoder's weights on the device; [`loader`](super::loader) makes them of a file's tensors.

use super::convert::HostMatrix;
use super::plans::Plans;
use crate::model_file::{LayerMatrix, MatrixFormat, ModelConfig};
use crate::weights_cache::KeptWeights;
use crate::{Result, WeightsFormat};
use half::bf16;
use halite_hal::Error;
use halite_kernels::embedding::{EmbeddingSpec, EmbeddingTable, TableFormat};
use halite_kernels::linear::LinearSpec;
use halite_kernels::moe::ExpertWeights;
use halite_kernels::{Backend, Tensor};

/// All weights of a decoder.
pub(super) struct Weights<B: Backend> {
    pub(super) embedding: Table<B>,
    pub(super) layers: Vec<LayerWeights<B>>,
    pub(super) final_norm: Tensor<B>,
    /// `[vocabulary, hidden]`.
    pub(super) output: B::Packed,
    /// Bytes of all of them.
    pub(super) bytes: u64,
    /// Whether they were kept by an earlier start.
    pub(super) restored: bool,
}

/// One layer's weights.
pub(super) struct LayerWeights<B: Backend> {
    /// F32 `[hidden]`.
    pub(super) attention_norm: Tensor<B>,
    /// Query, key and value rows, one below the other: `[query + 2 · kv, hidden]`.
    pub(super) qkv: B::Packed,
    /// F32 `[query + 2 · kv]`.
    pub(super) qkv_bias: Option<Tensor<B>>,
    /// Of queries and of keys, F32 `[head_dim]` each.
    pub(super) head_norms: Option<[Tensor<B>; 2]>,
    /// `[hidden, query]`.
    pub(super) attention_out: B::Packed,
    /// F32 `[hidden]`.
    pub(super) post_attention_norm: Option<Tensor<B>>,
    /// F32 `[hidden]`.
    pub(super) ffn_norm: Tensor<B>,
    /// The feed-forward layer.
    pub(super) ffn: FfnWeights<B>,
    /// F32 `[hidden]`.
    pub(super) post_ffn_norm: Option<Tensor<B>>,
}

impl<B: Backend> LayerWeights<B> {
    /// Scratch bytes of a step of up to so many tokens.
    pub(super) fn workspace(&self, device: &B, plans: &Plans<B>, max_tokens: usize) -> u64 {
        let linear = |packed| device.linear_workspace(packed, max_tokens);
        let ffn = match &self.ffn {
            FfnWeights::Dense(network) => linear(&network.gate_up).max(linear(&network.down)),
            FfnWeights::Experts { router, .. } => linear(router),
        };
        let experts = match (self.ffn.experts(), &plans.experts) {
            (Some(experts), Some(plans)) => device
                .moe_workspace(&plans.moe, experts, None)
                .max(device.routing_workspace(&plans.routing, max_tokens)),
            _ => 0,
        };
        linear(&self.qkv).max(linear(&self.attention_out)).max(ffn).max(experts)
    }
}

/// A feed-forward layer's weights.
pub(super) enum FfnWeights<B: Backend> {
    /// One network.
    Dense(Network<B>),
    /// A network for each expert.
    Experts {
        /// F32 `[experts, hidden]`, whatever the other weights are.
        router: B::Packed,
        gate_up: Vec<B::Packed>,
        down: Vec<B::Packed>,
    },
}

/// A gated feed-forward network.
pub(super) struct Network<B: Backend> {
    /// Gate rows above up rows, as one gated layer of `ffn` columns.
    pub(super) gate_up: B::Packed,
    /// `[hidden, ffn]`.
    pub(super) down: B::Packed,
}

impl<B: Backend> FfnWeights<B> {
    /// Its experts, where it has any.
    pub(super) fn experts(&self) -> Option<ExpertWeights<'_, B>> {
        match self {
            Self::Dense(_) => None,
            Self::Experts { gate_up, down, .. } => Some(ExpertWeights::new(gate_up, down)),
        }
    }
}

/// The embedding table: a row for each token id.
pub(super) enum Table<B: Backend> {
    Float(Tensor<B>),
    Int8 { q: Tensor<B>, scales: Tensor<B> },
}

impl<B: Backend> Table<B> {
    /// Uploads a matrix of these dimensions.
    pub(super) fn new(stream: &mut B::Stream, matrix: &HostMatrix, dims: &[usize]) -> Result<Self> {
        Ok(match matrix {
            HostMatrix::F32(values) => Self::Float(Tensor::from_slice(stream, values, dims)?),
            HostMatrix::Bf16(values) => Self::Float(Tensor::from_slice(stream, values, dims)?),
            HostMatrix::Int8 { q, scales } => Self::Int8 {
                q: Tensor::from_slice(stream, q, dims)?,
                scales: Tensor::from_slice(stream, scales, &dims[..1])?,
            },
            HostMatrix::Int4 { .. } | HostMatrix::Blocks(..) => return Err(four_bit_table().into()),
        })
    }

    /// Takes what was kept of a matrix's [sections](HostMatrix::sections).
    pub(super) fn take(
        stream: &mut B::Stream,
        kept: &mut KeptWeights,
        format: MatrixFormat,
        dims: &[usize],
    ) -> Result<Self> {
        let [values, scales] = HostMatrix::SECTIONS;
        let count = dims.iter().product();
        Ok(match format {
            MatrixFormat::F32 => {
                Self::Float(Tensor::from_slice(stream, kept.take_elements::<f32>(values, count)?, dims)?)
            }
            MatrixFormat::Bf16 => {
                Self::Float(Tensor::from_slice(stream, kept.take_elements::<bf16>(values, count)?, dims)?)
            }
            MatrixFormat::Int8 | MatrixFormat::Int8ForFloats | MatrixFormat::StoredInt8 => Self::Int8 {
                q: Tensor::from_slice(stream, kept.take_elements::<i8>(values, count)?, dims)?,
                scales: Tensor::from_slice(stream, kept.take_elements::<f32>(scales, dims[0])?, &dims[..1])?,
            },
            MatrixFormat::Int4 | MatrixFormat::Blocks(_) => return Err(four_bit_table().into()),
        })
    }

    pub(super) fn spec(&self) -> EmbeddingSpec {
        EmbeddingSpec::new(match self {
            Self::Float(table) => TableFormat::Float(table.dtype()),
            Self::Int8 { .. } => TableFormat::Int8PerRow,
        })
    }

    pub(super) fn as_argument(&self) -> EmbeddingTable<'_, B> {
        match self {
            Self::Float(table) => EmbeddingTable::Float(table),
            Self::Int8 { q, scales } => EmbeddingTable::Int8PerRow { q, scales },
        }
    }
}

/// The error of a table of 4 bits: no format of weights asks for one.
fn four_bit_table() -> Error {
    let (expected, got) = ("F32, BF16 or INT8".to_owned(), "4 bits".to_owned());
    Error::Argument { operator: "embedding", argument: "table", expected, got }
}

/// The two layers of a layer's feed-forward network, or of each of its experts.
pub(super) fn network_specs(config: &ModelConfig, weights: WeightsFormat, layer: usize) -> [LinearSpec; 2] {
    let format = |matrix| config.matrix_format(weights, layer, matrix);
    let gate_up = format(LayerMatrix::GateUp).spec(config.hidden, config.ffn).gated(config.activation);
    [gate_up, format(LayerMatrix::Down).spec(config.ffn, config.hidden)]
}
