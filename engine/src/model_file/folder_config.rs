//! Hyper-parameters from `config.json`, as the `transformers` package writes it.

use super::config::RopeConfig;
use super::config_keys::{self, ConfigKeys, MAX_CONTEXT, MAX_WIDTH, Names};
use super::family::{ARCHITECTURES, Family};
use super::json::JsonObject;
use super::{ModelConfig, ModelError, Part};
use crate::Result;
use crate::quoted::quoted;
use crate::safetensors::SafetensorsFolder;
use halite_kernels::rope::{RopeScaling, RopeStyle};

const NAMES: Names = Names {
    layers: "num_hidden_layers",
    hidden: "hidden_size",
    query_heads: "num_attention_heads",
    kv_heads: "num_key_value_heads",
    head_dim: "head_dim",
    ffn: "intermediate_size",
    context: "max_position_embeddings",
    norm_eps: "rms_norm_eps",
};

/// Reads the hyper-parameters. Where a key is missing that published files leave out, its value is the default of the
/// family's class in `transformers`.
pub(super) fn read(
    config: &JsonObject,
    tensors: &SafetensorsFolder,
    embedding: &str,
    has: impl Fn(Part) -> bool,
) -> Result<ModelConfig> {
    let Some(architecture) = config.opt_str("model_type")? else {
        return Err(ModelError::MissingKey { key: config.key("model_type") }.into());
    };
    let Some(family) = Family::of(architecture) else {
        let found = quoted(architecture);
        return Err(ModelError::Architecture { found, supported: ARCHITECTURES }.into());
    };
    // Models that also see keep the text model's keys apart.
    let text = config.opt_object("text_config")?;
    let keys = Keys { json: text.as_ref().unwrap_or(config), family };
    keys.refuse_unsupported()?;

    let missing = || ModelError::MissingTensor { tensor: embedding.to_owned(), expected: Vec::new() };
    let table = tensors.tensor(embedding).ok_or_else(missing)?;
    let vocabulary = config_keys::vocabulary(embedding, table.shape())?;
    let mut model = config_keys::config(&keys, family, RopeStyle::HalfSplit, vocabulary)?;
    model.architecture = architecture.to_owned();
    let name = config.opt_str("_name_or_path")?.filter(|name| !name.is_empty());
    model.name = name.map(|name| name.chars().take(256).collect());
    model.norm_weight_offset = if family.is_gemma() { 1.0 } else { 0.0 };
    model.tied = match keys.json.opt_bool("tie_word_embeddings")? {
        Some(tied) => tied,
        None => config.opt_bool("tie_word_embeddings")?.unwrap_or(family.is_gemma() || !has(Part::Output)),
    };
    keys.experts(&mut model)?;
    let rope = keys.rope(model.head_dim)?;
    for kind in &mut model.attention_kinds {
        kind.rope = rope.clone();
    }
    keys.windows(&mut model, rope)?;
    if family.is_gemma() {
        let divisor = keys.opt_positive("query_pre_attn_scalar")?.unwrap_or(256.0);
        model.attention_scale = 1.0 / divisor.sqrt();
        let default = |cap| (family == Family::Gemma2).then_some(cap);
        model.attention_soft_cap = keys.cap("attn_logit_softcapping", default(50.0))?;
        model.logit_soft_cap = keys.cap("final_logit_softcapping", default(30.0))?;
    }
    Ok(model)
}

/// The keys of one family's text model.
struct Keys<'a> {
    json: &'a JsonObject,
    family: Family,
}

impl ConfigKeys for Keys<'_> {
    fn names(&self) -> &'static Names {
        &NAMES
    }

    fn key(&self, name: &str) -> String {
        self.json.key(name)
    }

    fn opt_u64(&self, name: &str) -> Result<Option<u64>> {
        let given = self.json.opt_u64(name)?;
        Ok(given.or_else(|| self.default(name)))
    }

    fn opt_f32(&self, name: &str) -> Result<Option<f32>> {
        let given = self.json.opt_f32(name)?;
        Ok(given.or_else(|| (name == NAMES.norm_eps).then_some(1e-6)))
    }
}

impl Keys<'_> {
    /// The keys of an object inside this one.
    fn inside<'j>(&self, json: &'j JsonObject) -> Keys<'j> {
        Keys { json, family: self.family }
    }

    /// Sizes that the family's class has by default and that published files leave out.
    fn default(&self, name: &str) -> Option<u64> {
        Some(match (self.family, name) {
            (Family::Qwen3, "head_dim") => 128,
            (Family::Gemma2 | Family::Gemma3, "head_dim") => 256,
            (Family::Gemma3, "num_attention_heads") => 8,
            (Family::Gemma3, "num_key_value_heads") => 4,
            (Family::Gemma3, "max_position_embeddings") => 131_072,
            _ => return None,
        })
    }

    /// What changes the answers and is not built in must not be passed over.
    fn refuse_unsupported(&self) -> Result<()> {
        for (name, what) in [
            ("mlp_bias", "a feed-forward layer with biases"),
            ("use_bidirectional_attention", "bidirectional attention"),
        ] {
            if self.json.opt_bool(name)? == Some(true) {
                return Err(self.unsupported(what, name, true));
            }
        }
        // Qwen2 has its biases whatever the key says.
        if self.family != Family::Qwen2 && self.json.opt_bool("attention_bias")? == Some(true) {
            return Err(self.unsupported("attention with biases in this family", "attention_bias", true));
        }
        let own = if self.family.is_gemma() { "gelu_pytorch_tanh" } else { "silu" };
        for name in ["hidden_act", "hidden_activation"] {
            let Some(found) = self.json.opt_str(name)? else { continue };
            // Gemma's `hidden_act` stands in files beside `hidden_activation`, where its "gelu" was meant as tanh.
            let old = self.family.is_gemma() && name == "hidden_act" && found == "gelu";
            if found != own && !old {
                return Err(self.unsupported("this activation in this family", name, quoted(found)));
            }
        }
        Ok(())
    }

    /// How tokens choose experts.
    fn experts(&self, model: &mut ModelConfig) -> Result<()> {
        const PER_TOKEN: &str = "num_experts_per_tok";
        match self.family {
            Family::Mixtral => {
                model.experts = Some(config_keys::routing(self, ["num_local_experts", PER_TOKEN], true)?);
            }
            Family::Qwen3Moe => {
                // Every layer has experts; a file that says otherwise is another model.
                if let Some(step) = self.json.opt_u64("decoder_sparse_step")?.filter(|&step| step != 1) {
                    return Err(self.unsupported("layers without experts", "decoder_sparse_step", step));
                }
                if let Some(layers) = self.json.opt_array("mlp_only_layers")?.filter(|it| !it.is_empty()) {
                    return Err(self.unsupported("layers without experts", "mlp_only_layers", layers.len()));
                }
                // Version 5 of `transformers` writes the second name.
                let older = self.json.has("num_experts");
                let count = if older { "num_experts" } else { "num_local_experts" };
                let renormalized = self.json.opt_bool("norm_topk_prob")?.unwrap_or(false);
                model.experts = Some(config_keys::routing(self, [count, PER_TOKEN], renormalized)?);
                model.ffn = self.size("moe_intermediate_size", MAX_WIDTH)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// The rotation of layers without a window.
    fn rope(&self, head_dim: usize) -> Result<RopeConfig> {
        // Version 5 of `transformers` keeps everything in `rope_parameters`, by kind of layer where there are two.
        let parameters = self.json.opt_object("rope_parameters")?;
        let parameters = match parameters {
            Some(by_kind) if by_kind.get("full_attention").is_some() => {
                by_kind.opt_object("full_attention")?
            }
            other => other,
        };
        let default_theta = match self.family {
            Family::Gemma3 => 1_000_000.0,
            _ => 10_000.0,
        };
        let inner = self.inside(parameters.as_ref().unwrap_or(self.json));
        for keys in [self, &inner] {
            if let Some(part) = keys.opt_f32("partial_rotary_factor")?.filter(|&part| part != 1.0) {
                return Err(keys.unsupported("turning a part of each head", "partial_rotary_factor", part));
            }
        }
        let theta = match inner.opt_positive("rope_theta")? {
            Some(theta) => theta,
            None => self.opt_positive("rope_theta")?.unwrap_or(default_theta),
        };
        let scaling = match (&parameters, self.json.opt_object("rope_scaling")?) {
            (Some(_), _) => inner.rope_scaling()?,
            (None, Some(scaling)) => self.inside(&scaling).rope_scaling()?,
            (None, None) => RopeScaling::None,
        };
        Ok(RopeConfig { style: RopeStyle::HalfSplit, theta, rotary_dim: head_dim, scaling })
    }

    /// The scaling that this object describes.
    fn rope_scaling(&self) -> Result<RopeScaling> {
        // Older files call it `type`.
        let name = if self.json.has("rope_type") { "rope_type" } else { "type" };
        match self.json.opt_str(name)? {
            None | Some("default") => Ok(RopeScaling::None),
            Some("linear") => Ok(RopeScaling::Linear { factor: self.positive("factor")? }),
            Some("llama3") => {
                let original_context = self.size("original_max_position_embeddings", MAX_CONTEXT)?;
                Ok(RopeScaling::Llama3 {
                    factor: self.positive("factor")?,
                    low_freq_factor: self.positive("low_freq_factor")?,
                    high_freq_factor: self.positive("high_freq_factor")?,
                    original_context: u32::try_from(original_context).unwrap_or(u32::MAX),
                })
            }
            Some(other) => Err(self.unsupported("this kind of rope scaling", name, quoted(other))),
        }
    }

    /// A soft-cap: `null` is none, a missing key the family's default.
    fn cap(&self, name: &str, default: Option<f32>) -> Result<Option<f32>> {
        if self.json.has(name) { self.opt_positive(name) } else { Ok(default) }
    }

    /// Which layers have a window, and how positions turn there.
    fn windows(&self, model: &mut ModelConfig, rope: RopeConfig) -> Result<()> {
        let kinds = self.layer_types(model.layers)?;
        let default = match self.family {
            Family::Mistral | Family::Gemma2 | Family::Gemma3 if !self.json.has("sliding_window") => {
                Some(4096)
            }
            _ => None,
        };
        let Some(window) = self.opt_size("sliding_window", MAX_CONTEXT)?.or(default) else { return Ok(()) };
        let is_qwen = matches!(self.family, Family::Qwen2 | Family::Qwen3 | Family::Qwen3Moe);
        if self.family == Family::Llama
            || (is_qwen && self.json.opt_bool("use_sliding_window")? != Some(true))
        {
            return Ok(());
        }
        let local = if self.family == Family::Gemma3 { self.local_rope(rope)? } else { rope };
        if let Some(kinds) = kinds {
            model.set_windows(window, local, |layer| kinds[layer]);
            return Ok(());
        }
        let pattern = self.opt_size("sliding_window_pattern", MAX_CONTEXT)?.or(self.family.window_period());
        let first = if is_qwen { self.json.opt_u64("max_window_layers")?.unwrap_or(28) } else { 0 };
        model.set_windows(window, local, |layer| match pattern {
            Some(period) => (layer + 1) % period != 0,
            None => layer as u64 >= first,
        });
        Ok(())
    }

    /// The rotation of Gemma 3's layers with a window.
    fn local_rope(&self, rope: RopeConfig) -> Result<RopeConfig> {
        let theta = match self.json.opt_object("rope_parameters")? {
            Some(by_kind) => match by_kind.opt_object("sliding_attention")? {
                Some(local) => self.inside(&local).opt_positive("rope_theta")?,
                None => None,
            },
            None => self.opt_positive("rope_local_base_freq")?,
        };
        Ok(RopeConfig { theta: theta.unwrap_or(10_000.0), scaling: RopeScaling::None, ..rope })
    }

    /// Which layers have a window, where the file names each.
    fn layer_types(&self, layers: usize) -> Result<Option<Vec<bool>>> {
        const NAME: &str = "layer_types";
        let Some(types) = self.json.opt_array(NAME)? else { return Ok(None) };
        if types.len() != layers {
            return Err(self.wrong(NAME, format!("{layers} names, one a layer"), types.len()));
        }
        let windowed = |kind: &serde_json::Value| match kind.as_str() {
            Some("full_attention") => Ok(false),
            Some("sliding_attention") => Ok(true),
            _ => Err(self.unsupported("this kind of layer", NAME, quoted(&kind.to_string()))),
        };
        types.iter().map(windowed).collect::<Result<_>>().map(Some)
    }
}
