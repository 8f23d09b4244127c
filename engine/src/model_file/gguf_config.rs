//! Hyper-parameters from a GGUF file's metadata.

use super::config::RopeConfig;
use super::config_keys::{self, ConfigKeys, MAX_CONTEXT, MAX_WIDTH, Names};
use super::family::{ARCHITECTURES, Family};
use super::{ModelConfig, ModelError, rope_factors};
use crate::Result;
use crate::gguf::{GgufFile, Metadata};
use crate::quoted::quoted;
use halite_kernels::rope::{RopeScaling, RopeStyle};

const NAMES: Names = Names {
    layers: "block_count",
    hidden: "embedding_length",
    query_heads: "attention.head_count",
    kv_heads: "attention.head_count_kv",
    head_dim: "attention.key_length",
    ffn: "feed_forward_length",
    context: "context_length",
    norm_eps: "attention.layer_norm_rms_epsilon",
};

/// The embedding table.
const TABLE: &str = "token_embd.weight";

/// Gemma 2's window, in files that do not name it.
const GEMMA2_WINDOW: usize = 4096;

/// The base of Gemma 3's layers with a window, in files that do not name it.
const GEMMA3_LOCAL_THETA: f32 = 10_000.0;

/// The scores of Gemma 2 and 3 with 27 billion parameters are divided by the root of `hidden / heads` and not of
/// `head_dim`. GGUF files do not say so; the number of layers tells these models from the others.
const GEMMA2_27B_LAYERS: usize = 46;
const GEMMA3_27B_LAYERS: usize = 62;

/// Reads the hyper-parameters; [`shapes`](super::shapes) holds them against the tensors.
pub(super) fn read(file: &GgufFile) -> Result<ModelConfig> {
    let metadata = file.metadata();
    let architecture = metadata.str("general.architecture")?;
    let Some(family) = Family::of(architecture) else {
        let found = quoted(architecture);
        return Err(ModelError::Architecture { found, supported: ARCHITECTURES }.into());
    };
    let keys = Keys { metadata, architecture };
    // Query and key rows of the Llama family are stored permuted, so that pairs lie side by side.
    let style = match family {
        Family::Llama | Family::Mistral | Family::Mixtral => RopeStyle::Interleaved,
        _ => RopeStyle::HalfSplit,
    };
    let vocabulary = config_keys::vocabulary(TABLE, file.tensor(TABLE)?.shape())?;
    let mut config = config_keys::config(&keys, family, style, vocabulary)?;
    keys.experts(family, &mut config)?;
    let head_dim = config.head_dim;
    let value_head_dim = keys.opt_u64("attention.value_length")?.unwrap_or(head_dim as u64);
    if value_head_dim != head_dim as u64 {
        let expected = format!("the key's length, {head_dim}");
        return Err(keys.wrong("attention.value_length", expected, value_head_dim));
    }
    let rotary_dim = keys.opt_size("rope.dimension_count", MAX_CONTEXT)?.unwrap_or(head_dim);
    if rotary_dim > head_dim || !rotary_dim.is_multiple_of(2) {
        let expected = format!("an even number from 2 to {head_dim}");
        return Err(keys.wrong("rope.dimension_count", expected, rotary_dim));
    }
    config.architecture = architecture.to_owned();
    config.name = metadata.opt_str("general.name")?.map(|name| name.chars().take(256).collect());
    config.tied = file.tensor_info("output.weight").is_none();
    let theta = keys.opt_positive("rope.freq_base")?.unwrap_or(10_000.0);
    let rope = RopeConfig { style, theta, rotary_dim, scaling: keys.rope_scaling()? };
    for kind in &mut config.attention_kinds {
        kind.rope = rope.clone();
    }
    keys.windows(family, &mut config, rope)?;
    if family.is_gemma() {
        // Files from before the keys were named were made of models that have these.
        let default = |cap| (family == Family::Gemma2).then_some(cap);
        config.attention_soft_cap = keys.opt_positive("attn_logit_softcapping")?.or(default(50.0));
        config.logit_soft_cap = keys.opt_positive("final_logit_softcapping")?.or(default(30.0));
        let large = if family == Family::Gemma2 { GEMMA2_27B_LAYERS } else { GEMMA3_27B_LAYERS };
        if config.layers == large {
            config.attention_scale = (config.query_heads as f32 / config.hidden as f32).sqrt();
        }
    }
    if file.tensor_info(rope_factors::TENSOR).is_some() {
        rope_factors::apply(file, &mut config)?;
    }
    Ok(config)
}

/// The metadata below the architecture's own prefix.
struct Keys<'a> {
    metadata: &'a Metadata,
    architecture: &'a str,
}

impl ConfigKeys for Keys<'_> {
    fn names(&self) -> &'static Names {
        &NAMES
    }

    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.architecture)
    }

    fn opt_u64(&self, name: &str) -> Result<Option<u64>> {
        Ok(self.metadata.opt_u64(&self.key(name))?)
    }

    fn opt_f32(&self, name: &str) -> Result<Option<f32>> {
        Ok(self.metadata.opt_f32(&self.key(name))?)
    }
}

impl Keys<'_> {
    fn experts(&self, family: Family, config: &mut ModelConfig) -> Result<()> {
        let Some(experts) = self.opt_u64("expert_count")?.filter(|&experts| experts != 0) else {
            return Ok(());
        };
        match family {
            Family::Llama | Family::Mistral | Family::Mixtral => {}
            Family::Qwen3Moe => config.ffn = self.size("expert_feed_forward_length", MAX_WIDTH)?,
            _ => {
                return Err(self.unsupported("a mixture of experts in this family", "expert_count", experts));
            }
        }
        // Newer files name what only other kinds of mixtures have.
        for (name, usual) in
            [("expert_shared_count", 0), ("expert_group_count", 1), ("expert_gating_func", 1)]
        {
            if let Some(found) = self.opt_u64(name)?.filter(|&found| found != usual && found != 0) {
                return Err(self.unsupported("this kind of mixture of experts", name, found));
            }
        }
        // Files that do not say so are of models whose weights are divided by their sum.
        let renormalized = self.metadata.opt_bool(&self.key("expert_weights_norm"))?.unwrap_or(true);
        let mut routing = config_keys::routing(self, ["expert_count", "expert_used_count"], renormalized)?;
        if let Some(scale) = self.opt_positive("expert_weights_scale")? {
            routing = routing.with_scale(scale);
        }
        config.experts = Some(routing);
        Ok(())
    }

    fn rope_scaling(&self) -> Result<RopeScaling> {
        let name = "rope.scaling.type";
        match self.metadata.opt_str(&self.key(name))? {
            // Files from before the key was named so have the factor of linear scaling alone.
            None if self.metadata.get(&self.key("rope.scale_linear")).is_some() => {
                Ok(RopeScaling::Linear { factor: self.positive("rope.scale_linear")? })
            }
            None | Some("none") => Ok(RopeScaling::None),
            Some("linear") => Ok(RopeScaling::Linear { factor: self.positive("rope.scaling.factor")? }),
            Some(other) => Err(self.unsupported("this kind of rope scaling", name, quoted(other))),
        }
    }

    fn windows(&self, family: Family, config: &mut ModelConfig, rope: RopeConfig) -> Result<()> {
        let name = "attention.sliding_window";
        let window = self.opt_u64(name)?.filter(|&window| window != 0);
        let default = (family == Family::Gemma2).then_some(GEMMA2_WINDOW as u64);
        let Some(window) = window.or(default) else { return Ok(()) };
        // A window beyond every context is none that shows.
        let window = usize::try_from(window).unwrap_or(MAX_CONTEXT).min(MAX_CONTEXT);
        let local = if family == Family::Gemma3 {
            let theta = self.opt_positive("rope.freq_base_swa")?.unwrap_or(GEMMA3_LOCAL_THETA);
            RopeConfig { theta, scaling: RopeScaling::None, ..rope }
        } else {
            rope
        };
        let period = family.window_period();
        config.set_windows(window, local, |layer| period.is_none_or(|period| layer % period != period - 1));
        Ok(())
    }
}
