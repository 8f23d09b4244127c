//! Hyper-parameters by the names a format gives them: what every format is checked for in the same way.

use super::config::{AttentionKind, RopeConfig};
use super::family::Family;
use super::{ModelConfig, ModelError};
use crate::{EngineError, Result};
use halite_kernels::moe::{RoutingSpec, Scoring};
use halite_kernels::rope::{RopeScaling, RopeStyle};

// Far beyond every model there is; with them no product of two or three sizes overflows.
const MAX_LAYERS: usize = 1 << 12;
pub(super) const MAX_WIDTH: usize = 1 << 20;
const MAX_HEADS: usize = 1 << 12;
const MAX_HEAD_DIM: usize = 1 << 12;
/// Far beyond every mixture; more would only make a long list of tensors that are missing.
pub(super) const MAX_EXPERTS: usize = 1 << 12;
const MAX_VOCABULARY: usize = 1 << 24;
pub(super) const MAX_CONTEXT: usize = 1 << 30;

/// How a format names the sizes that all families have.
pub(super) struct Names {
    pub(super) layers: &'static str,
    pub(super) hidden: &'static str,
    pub(super) query_heads: &'static str,
    pub(super) kv_heads: &'static str,
    pub(super) head_dim: &'static str,
    pub(super) ffn: &'static str,
    pub(super) context: &'static str,
    pub(super) norm_eps: &'static str,
}

/// Numbers of a file by name. A value of another type is an error that names the key.
pub(super) trait ConfigKeys {
    fn names(&self) -> &'static Names;

    /// A name as the file spells it, with what stands before it.
    fn key(&self, name: &str) -> String;

    /// A non-negative integer; `None` where it is missing.
    fn opt_u64(&self, name: &str) -> Result<Option<u64>>;

    /// A number; `None` where it is missing.
    fn opt_f32(&self, name: &str) -> Result<Option<f32>>;

    fn wrong(&self, name: &str, expected: impl Into<String>, got: impl ToString) -> EngineError {
        ModelError::Value { key: self.key(name), expected: expected.into(), got: got.to_string() }.into()
    }

    fn unsupported(&self, what: &'static str, name: &str, got: impl ToString) -> EngineError {
        ModelError::Unsupported { what, key: self.key(name), got: got.to_string() }.into()
    }

    /// A size from 1 to `limit`.
    fn size(&self, name: &str, limit: usize) -> Result<usize> {
        let size = self.opt_size(name, limit)?;
        size.ok_or_else(|| ModelError::MissingKey { key: self.key(name) }.into())
    }

    /// As [`Self::size`], `None` where the key is missing.
    fn opt_size(&self, name: &str, limit: usize) -> Result<Option<usize>> {
        let Some(value) = self.opt_u64(name)? else { return Ok(None) };
        match usize::try_from(value) {
            Ok(size) if (1..=limit).contains(&size) => Ok(Some(size)),
            _ => Err(self.wrong(name, format!("1 to {limit}"), value)),
        }
    }

    /// A number above 0.
    fn positive(&self, name: &str) -> Result<f32> {
        let value = self.opt_positive(name)?;
        value.ok_or_else(|| ModelError::MissingKey { key: self.key(name) }.into())
    }

    /// As [`Self::positive`], `None` where the key is missing.
    fn opt_positive(&self, name: &str) -> Result<Option<f32>> {
        match self.opt_f32(name)? {
            Some(value) if value.is_finite() && value > 0.0 => Ok(Some(value)),
            Some(value) => Err(self.wrong(name, "a finite number above 0", value)),
            None => Ok(None),
        }
    }
}

/// The configuration of a family with the file's sizes, and everything else as the family usually has it: one kind of
/// attention, without a window, turned by the default base.
pub(super) fn config(
    keys: &impl ConfigKeys,
    family: Family,
    style: RopeStyle,
    vocabulary: usize,
) -> Result<ModelConfig> {
    let names = keys.names();
    let hidden = keys.size(names.hidden, MAX_WIDTH)?;
    let query_heads = keys.size(names.query_heads, MAX_HEADS)?;
    let kv_heads = keys.opt_size(names.kv_heads, MAX_HEADS)?.unwrap_or(query_heads);
    if !query_heads.is_multiple_of(kv_heads) {
        let expected = format!("a divisor of the {query_heads} query heads");
        return Err(keys.wrong(names.kv_heads, expected, kv_heads));
    }
    let head_dim = match keys.opt_size(names.head_dim, MAX_HEAD_DIM)? {
        Some(head_dim) => head_dim,
        None if hidden.is_multiple_of(query_heads) => hidden / query_heads,
        None => {
            let expected = format!("a divisor of the {hidden} elements of a hidden state");
            return Err(keys.wrong(names.query_heads, expected, query_heads));
        }
    };
    if head_dim > MAX_HEAD_DIM {
        let expected = format!("heads of at most {MAX_HEAD_DIM} elements");
        return Err(keys.wrong(names.query_heads, expected, format!("heads of {head_dim}")));
    }
    if !head_dim.is_multiple_of(2) {
        return Err(keys.wrong(names.head_dim, "an even number", head_dim));
    }
    let layers = keys.size(names.layers, MAX_LAYERS)?;
    let rope = RopeConfig { style, theta: 10_000.0, rotary_dim: head_dim, scaling: RopeScaling::None };
    Ok(ModelConfig {
        architecture: String::new(),
        name: None,
        layers,
        hidden,
        query_heads,
        kv_heads,
        head_dim,
        ffn: keys.size(names.ffn, MAX_WIDTH)?,
        experts: None,
        vocabulary,
        context: keys.size(names.context, MAX_CONTEXT)?,
        norm_eps: keys.positive(names.norm_eps)?,
        norm_weight_offset: 0.0,
        activation: family.activation(),
        qkv_bias: family.qkv_bias(),
        head_norms: family.head_norms(),
        post_norms: family.post_norms(),
        embedding_scale: family.embedding_scale(hidden),
        attention_scale: 1.0 / (head_dim as f32).sqrt(),
        attention_soft_cap: None,
        logit_soft_cap: None,
        attention_kinds: vec![AttentionKind { window: None, rope }],
        layer_kinds: vec![0; layers],
        tied: false,
        stored_w8a8: false,
        // Told by the tensors, once their shapes are known to be right.
        four_bit: Vec::new(),
    })
}

/// The routing of `count` experts: softmax, then the best `per_token`.
pub(super) fn routing(
    keys: &impl ConfigKeys,
    [count, per_token]: [&str; 2],
    renormalized: bool,
) -> Result<RoutingSpec> {
    let experts = keys.size(count, MAX_EXPERTS)?;
    let routing = RoutingSpec::new(experts, keys.size(per_token, experts)?, Scoring::Softmax);
    Ok(if renormalized { routing.renormalized() } else { routing })
}

/// Rows of the embedding table: what a file's `vocab_size` says is only a claim.
pub(super) fn vocabulary(table: &str, shape: &[usize]) -> Result<usize> {
    match shape {
        &[rows, _] if (1..=MAX_VOCABULARY).contains(&rows) => Ok(rows),
        shape => Err(ModelError::Value {
            key: table.to_owned(),
            expected: format!("two dimensions, of 1 to {MAX_VOCABULARY} rows"),
            got: format!("{shape:?}"),
        }
        .into()),
    }
}

impl ModelConfig {
    /// Gives a window to the layers that `windowed` says, and to them the rotation `rope`.
    pub(super) fn set_windows(&mut self, window: usize, rope: RopeConfig, windowed: impl Fn(usize) -> bool) {
        let Some(full) = self.attention_kinds.first().cloned() else { return };
        let local = AttentionKind { window: Some(window), rope };
        let layers: Vec<bool> = (0..self.layers).map(windowed).collect();
        self.attention_kinds = match (layers.contains(&false), layers.contains(&true)) {
            (_, false) => vec![full],
            (false, true) => vec![local],
            (true, true) => vec![full, local],
        };
        let two = self.attention_kinds.len() == 2;
        self.layer_kinds = layers.into_iter().map(|windowed| usize::from(two && windowed)).collect();
    }
}
