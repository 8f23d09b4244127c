//! A model's hyper-parameters, whatever file they came from.

use super::FourBitLayer;
use crate::WeightsFormat;
use halite_kernels::activation::Activation;
use halite_kernels::attention::{AttentionSpec, Mask};
use halite_kernels::cache::KvSpec;
use halite_kernels::moe::RoutingSpec;
use halite_kernels::rope::{RopeScaling, RopeSpec, RopeStyle};

/// Hyper-parameters of a decoder-only transformer of the Llama kind: what the families differ in is a value here.
///
/// [`ModelFile::config`](crate::model_file::ModelFile::config) reads them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ModelConfig {
    /// What the file calls its architecture.
    pub architecture: String,
    /// What the file calls the model.
    pub name: Option<String>,
    /// Decoder layers.
    pub layers: usize,
    /// Elements of a hidden state.
    pub hidden: usize,
    /// Query heads, a multiple of the KV heads.
    pub query_heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Elements of a head.
    pub head_dim: usize,
    /// Elements between the two halves of a feed-forward layer, or of an expert's.
    pub ffn: usize,
    /// How tokens choose their experts, where feed-forward layers are mixtures of experts.
    pub experts: Option<RoutingSpec>,
    /// Token ids.
    pub vocabulary: usize,
    /// The context that the model was made for, in tokens.
    pub context: usize,
    /// Added to the mean square in the norms.
    pub norm_eps: f32,
    /// Added to the norms' weights as the file has them.
    pub norm_weight_offset: f32,
    /// The feed-forward layer's gate.
    pub activation: Activation,
    /// Whether queries, keys and values have biases.
    pub qkv_bias: bool,
    /// Whether queries and keys are normalised, a head at a time.
    pub head_norms: bool,
    /// Whether what attention and feed-forward give is normalised before it is added.
    pub post_norms: bool,
    /// Factor of the embeddings.
    pub embedding_scale: f32,
    /// Factor of the attention scores.
    pub attention_scale: f32,
    /// Bound of the attention scores.
    pub attention_soft_cap: Option<f32>,
    /// Bound of the logits.
    pub logit_soft_cap: Option<f32>,
    /// The kinds of attention, one or two.
    pub attention_kinds: Vec<AttentionKind>,
    /// `[layers]`: which of `attention_kinds` each layer has.
    pub layer_kinds: Vec<usize>,
    /// Whether the output layer is the embedding table.
    pub tied: bool,
    /// Whether the layers' matrices are INT8 in the file. As W8A8 they are used as they are.
    pub stored_w8a8: bool,
    /// `[layers]`: how each layer's matrices are kept with 4-bit weights.
    pub four_bit: Vec<FourBitLayer>,
}

/// What layers of one kind have in common: how far they see, and how positions turn.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AttentionKind {
    /// How many positions a token sees, its own included; `None`: all up to its own.
    pub window: Option<usize>,
    /// The rotation of queries and keys.
    pub rope: RopeConfig,
}

/// A rotation, for any context.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RopeConfig {
    /// Which two elements make a pair.
    pub style: RopeStyle,
    /// The base of the frequencies.
    pub theta: f32,
    /// Elements of a head that turn.
    pub rotary_dim: usize,
    /// How the frequencies are stretched.
    pub scaling: RopeScaling,
}

impl ModelConfig {
    /// The rotation of layers of one kind, for positions below `context`.
    pub fn rope(&self, kind: &AttentionKind, context: usize) -> RopeSpec {
        RopeSpec::new(self.head_dim, kind.rope.style, context)
            .with_theta(kind.rope.theta)
            .with_rotary_dim(kind.rope.rotary_dim)
            .with_scaling(kind.rope.scaling.clone())
    }

    /// The attention of layers of one kind, over a cache.
    pub fn attention(&self, kind: &AttentionKind, kv: KvSpec) -> AttentionSpec {
        let mut spec = AttentionSpec::causal(self.query_heads, kv).with_scale(self.attention_scale);
        if let Some(window) = kind.window {
            spec = spec.with_mask(Mask::Sliding { window });
        }
        match self.attention_soft_cap {
            Some(cap) => spec.with_soft_cap(cap),
            None => spec,
        }
    }

    /// The format of the embedding table beside layers of a format. A checkpoint that was quantised with care keeps the
    /// table as it was. Beside 4 bits it is INT8, whatever the file has: a step reads a row a token, so fewer bits would not
    /// make it faster.
    pub fn table_format(&self, weights: WeightsFormat) -> WeightsFormat {
        match weights {
            WeightsFormat::W4a8 => WeightsFormat::W8a8,
            WeightsFormat::W8a8 if self.stored_w8a8 => WeightsFormat::Bf16,
            _ => weights,
        }
    }

    /// Columns of all query heads.
    pub fn query_width(&self) -> usize {
        self.query_heads * self.head_dim
    }

    /// Columns of all key heads, and of all value heads.
    pub fn kv_width(&self) -> usize {
        self.kv_heads * self.head_dim
    }
}
