//! What the `transformers` package calls a decoder's tensors.

use super::family::Family;
use super::{ExpertPart, LayerPart, ModelConfig, Part};
use crate::safetensors::SafetensorsFolder;

/// Names begin with one of these: text models, and the text part of models that also see, as newer and older versions
/// of `transformers` save it.
const PREFIXES: [&str; 3] = ["model.", "model.language_model.", "language_model.model."];

/// What stands before the names in this folder.
pub(super) fn prefix(tensors: &SafetensorsFolder) -> &'static str {
    let has = |prefix: &&&str| tensors.tensor(&format!("{prefix}embed_tokens.weight")).is_some();
    PREFIXES.iter().find(has).copied().unwrap_or(PREFIXES[0])
}

/// A tensor's name. Where a family has norms on both sides of attention and feed-forward (`post_norms`),
/// `post_attention_layernorm` is the one after attention; in the others it is the one before the feed-forward layer.
pub(super) fn name(prefix: &str, part: Part, family: Option<Family>) -> String {
    let post_norms = family.is_some_and(Family::post_norms);
    let layer_part = |part| {
        let name = match part {
            LayerPart::Router if family == Some(Family::Mixtral) => "block_sparse_moe.gate.weight",
            LayerPart::Router => "mlp.gate.weight",
            LayerPart::Expert(expert, part) => return expert_name(expert, part, family),
            LayerPart::AttentionNorm => "input_layernorm.weight",
            LayerPart::Query => "self_attn.q_proj.weight",
            LayerPart::Key => "self_attn.k_proj.weight",
            LayerPart::Value => "self_attn.v_proj.weight",
            LayerPart::QueryBias => "self_attn.q_proj.bias",
            LayerPart::KeyBias => "self_attn.k_proj.bias",
            LayerPart::ValueBias => "self_attn.v_proj.bias",
            LayerPart::QueryNorm => "self_attn.q_norm.weight",
            LayerPart::KeyNorm => "self_attn.k_norm.weight",
            LayerPart::AttentionOut => "self_attn.o_proj.weight",
            LayerPart::PostAttentionNorm => "post_attention_layernorm.weight",
            LayerPart::FfnNorm if post_norms => "pre_feedforward_layernorm.weight",
            LayerPart::FfnNorm => "post_attention_layernorm.weight",
            LayerPart::Gate => "mlp.gate_proj.weight",
            LayerPart::Up => "mlp.up_proj.weight",
            LayerPart::Down => "mlp.down_proj.weight",
            LayerPart::PostFfnNorm => "post_feedforward_layernorm.weight",
        };
        name.to_owned()
    };
    match part {
        Part::Embedding => format!("{prefix}embed_tokens.weight"),
        Part::FinalNorm => format!("{prefix}norm.weight"),
        Part::Output => match prefix {
            "language_model.model." => "language_model.lm_head.weight".to_owned(),
            _ => "lm_head.weight".to_owned(),
        },
        Part::Layer(layer, part) => format!("{prefix}layers.{layer}.{}", layer_part(part)),
    }
}

/// A matrix of an expert, within its layer.
fn expert_name(expert: usize, part: ExpertPart, family: Option<Family>) -> String {
    let (experts, names) = match family {
        Some(Family::Mixtral) => ("block_sparse_moe.experts", ["w1", "w3", "w2"]),
        _ => ("mlp.experts", ["gate_proj", "up_proj", "down_proj"]),
    };
    let name = match part {
        ExpertPart::Gate => names[0],
        ExpertPart::Up => names[1],
        ExpertPart::Down => names[2],
    };
    format!("{experts}.{expert}.{name}.weight")
}

/// Whether a tensor without a place in the decoder changes no answer to a text.
pub(super) fn is_passed_over(name: &str, config: &ModelConfig) -> bool {
    // Tables that can be computed; old files have them.
    name.ends_with(".rotary_emb.inv_freq")
        // A copy of the embedding table.
        || (config.tied && name.ends_with("lm_head.weight"))
        // Of models that also see: texts do not come by there.
        || ["vision_tower.", "model.vision_tower.", "multi_modal_projector.", "model.multi_modal_projector."]
            .iter()
            .any(|prefix| name.starts_with(prefix))
}
