//! A decoder's tensors, whatever a file calls them.

use super::ModelConfig;

/// One tensor of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Part {
    /// `[vocabulary, hidden]`.
    Embedding,
    /// `[hidden]`.
    FinalNorm,
    /// `[vocabulary, hidden]`, where it is not the embedding table.
    Output,
    /// One of a layer.
    Layer(usize, LayerPart),
}

/// One tensor of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LayerPart {
    AttentionNorm,
    Query,
    Key,
    Value,
    QueryBias,
    KeyBias,
    ValueBias,
    QueryNorm,
    KeyNorm,
    AttentionOut,
    PostAttentionNorm,
    FfnNorm,
    Gate,
    Up,
    Down,
    PostFfnNorm,
    /// `[experts, hidden]`.
    Router,
    /// One of an expert.
    Expert(usize, ExpertPart),
}

/// One matrix of an expert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ExpertPart {
    Gate,
    Up,
    Down,
}

impl LayerPart {
    /// The parts of one layer and their shapes, `[rows, columns]`.
    pub(super) fn shapes(config: &ModelConfig) -> Vec<(Self, Vec<usize>)> {
        let (hidden, ffn) = (config.hidden, config.ffn);
        let (query, kv) = (config.query_width(), config.kv_width());
        let mut parts = vec![
            (Self::AttentionNorm, vec![hidden]),
            (Self::Query, vec![query, hidden]),
            (Self::Key, vec![kv, hidden]),
            (Self::Value, vec![kv, hidden]),
            (Self::AttentionOut, vec![hidden, query]),
            (Self::FfnNorm, vec![hidden]),
        ];
        match &config.experts {
            None => parts.extend([
                (Self::Gate, vec![ffn, hidden]),
                (Self::Up, vec![ffn, hidden]),
                (Self::Down, vec![hidden, ffn]),
            ]),
            Some(routing) => {
                parts.push((Self::Router, vec![routing.experts, hidden]));
                for expert in 0..routing.experts {
                    parts.extend([
                        (Self::Expert(expert, ExpertPart::Gate), vec![ffn, hidden]),
                        (Self::Expert(expert, ExpertPart::Up), vec![ffn, hidden]),
                        (Self::Expert(expert, ExpertPart::Down), vec![hidden, ffn]),
                    ]);
                }
            }
        }
        if config.qkv_bias {
            parts.extend([
                (Self::QueryBias, vec![query]),
                (Self::KeyBias, vec![kv]),
                (Self::ValueBias, vec![kv]),
            ]);
        }
        if config.head_norms {
            parts.extend([(Self::QueryNorm, vec![config.head_dim]), (Self::KeyNorm, vec![config.head_dim])]);
        }
        if config.post_norms {
            parts.extend([(Self::PostAttentionNorm, vec![hidden]), (Self::PostFfnNorm, vec![hidden])]);
        }
        parts
    }
}
