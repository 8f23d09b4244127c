//! A model's hyper-parameters, read from a file's metadata and held against its tensors' shapes.

use super::{ModelError, rope_factors};
use crate::gguf::{GgufFile, Metadata};
use crate::quoted::quoted;
use crate::{EngineError, Result};
use halite_kernels::rope::{RopeScaling, RopeSpec, RopeStyle};

/// Architectures that are built in.
pub const ARCHITECTURES: &str = "llama";

/// Hyper-parameters of a decoder of the Llama family.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ModelConfig {
    /// `general.architecture`.
    pub architecture: String,
    /// `general.name`.
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
    /// Elements between the two halves of a feed-forward layer.
    pub ffn: usize,
    /// Token ids.
    pub vocabulary: usize,
    /// The context that the model was made for, in tokens.
    pub context: usize,
    /// Added to the mean square in the norms.
    pub norm_eps: f32,
    /// The base of the rotation's frequencies.
    pub rope_theta: f32,
    /// Elements of a head that turn.
    pub rotary_dim: usize,
    /// How the frequencies are stretched.
    pub rope_scaling: RopeScaling,
    /// Whether the output layer is the embedding table.
    pub tied: bool,
}

impl ModelConfig {
    /// Reads the hyper-parameters. Every value is checked, and so is every tensor's shape;
    /// nothing large is allocated by it.
    ///
    /// # Errors
    /// An unknown architecture, a missing key, or a value that makes no sense: by key.
    pub fn read(file: &GgufFile) -> Result<Self> {
        let metadata = file.metadata();
        let architecture = metadata.str("general.architecture")?;
        if architecture != "llama" {
            let found = quoted(architecture);
            return Err(ModelError::Architecture { found, supported: ARCHITECTURES }.into());
        }
        let keys = Keys { metadata, architecture };
        keys.refuse_unsupported()?;

        let hidden = keys.size("embedding_length", MAX_WIDTH)?;
        let query_heads = keys.size("attention.head_count", MAX_HEADS)?;
        let kv_heads = keys.opt_size("attention.head_count_kv", MAX_HEADS)?.unwrap_or(query_heads);
        if !query_heads.is_multiple_of(kv_heads) {
            let expected = format!("a divisor of the {query_heads} query heads");
            return Err(keys.wrong("attention.head_count_kv", expected, kv_heads));
        }
        let head_dim = match keys.opt_size("attention.key_length", MAX_HEAD_DIM)? {
            Some(head_dim) => head_dim,
            None if hidden.is_multiple_of(query_heads) => hidden / query_heads,
            None => {
                let expected = format!("a divisor of the embedding length {hidden}");
                return Err(keys.wrong("attention.head_count", expected, query_heads));
            }
        };
        if head_dim > MAX_HEAD_DIM {
            let expected = format!("heads of at most {MAX_HEAD_DIM} elements");
            return Err(keys.wrong("attention.head_count", expected, format!("heads of {head_dim}")));
        }
        let value_head_dim = keys.opt_size("attention.value_length", MAX_HEAD_DIM)?.unwrap_or(head_dim);
        if value_head_dim != head_dim {
            let expected = format!("the key's length, {head_dim}");
            return Err(keys.wrong("attention.value_length", expected, value_head_dim));
        }

        let mut config = Self {
            architecture: architecture.to_owned(),
            name: metadata.opt_str("general.name")?.map(|name| name.chars().take(256).collect()),
            layers: keys.size("block_count", MAX_LAYERS)?,
            hidden,
            query_heads,
            kv_heads,
            head_dim,
            ffn: keys.size("feed_forward_length", MAX_WIDTH)?,
            vocabulary: vocabulary(file)?,
            context: keys.size("context_length", MAX_CONTEXT)?,
            norm_eps: keys.positive("attention.layer_norm_rms_epsilon", None)?,
            rope_theta: keys.positive("rope.freq_base", Some(10_000.0))?,
            rotary_dim: keys.opt_size("rope.dimension_count", MAX_HEAD_DIM)?.unwrap_or(head_dim),
            rope_scaling: keys.rope_scaling()?,
            tied: file.tensor_info("output.weight").is_none(),
        };
        if config.rotary_dim > head_dim || !config.rotary_dim.is_multiple_of(2) {
            let expected = format!("an even number from 2 to {head_dim}");
            return Err(keys.wrong("rope.dimension_count", expected, config.rotary_dim));
        }
        super::shapes::check_tensors(file, &config)?;
        if file.tensor_info(rope_factors::TENSOR).is_some() {
            config.rope_scaling = rope_factors::scaling(file, &config)?;
        }
        Ok(config)
    }

    /// The rotation, for positions below `context`.
    pub fn rope(&self, context: usize) -> RopeSpec {
        // GGUF stores the query and key rows of this family permuted, so that pairs lie side by side.
        RopeSpec::new(self.head_dim, RopeStyle::Interleaved, context)
            .with_theta(self.rope_theta)
            .with_rotary_dim(self.rotary_dim)
            .with_scaling(self.rope_scaling)
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

// Far beyond every model there is; with them no product of two or three sizes overflows.
const MAX_LAYERS: usize = 1 << 12;
const MAX_WIDTH: usize = 1 << 20;
const MAX_HEADS: usize = 1 << 12;
const MAX_HEAD_DIM: usize = 1 << 12;
const MAX_VOCABULARY: usize = 1 << 24;
const MAX_CONTEXT: usize = 1 << 30;

/// Rows of the embedding table: what the file's `vocab_size` says is only a claim.
fn vocabulary(file: &GgufFile) -> Result<usize> {
    let table = file.tensor("token_embd.weight")?;
    match table.shape() {
        &[rows, _] if (1..=MAX_VOCABULARY).contains(&rows) => Ok(rows),
        shape => Err(ModelError::Value {
            key: "token_embd.weight".to_owned(),
            expected: format!("two dimensions, of 1 to {MAX_VOCABULARY} rows"),
            got: format!("{shape:?}"),
        }
        .into()),
    }
}

/// The metadata below the architecture's own prefix.
struct Keys<'a> {
    metadata: &'a Metadata,
    architecture: &'a str,
}

impl Keys<'_> {
    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.architecture)
    }

    fn wrong(&self, name: &str, expected: impl Into<String>, got: impl ToString) -> EngineError {
        ModelError::Value { key: self.key(name), expected: expected.into(), got: got.to_string() }.into()
    }

    /// A size from 1 to `limit`.
    fn size(&self, name: &str, limit: usize) -> Result<usize> {
        self.check_size(name, self.metadata.u64(&self.key(name))?, limit)
    }

    /// As [`Self::size`], `None` where the key is missing.
    fn opt_size(&self, name: &str, limit: usize) -> Result<Option<usize>> {
        let value = self.metadata.opt_u64(&self.key(name))?;
        value.map(|value| self.check_size(name, value, limit)).transpose()
    }

    fn check_size(&self, name: &str, value: u64, limit: usize) -> Result<usize> {
        match usize::try_from(value) {
            Ok(size) if (1..=limit).contains(&size) => Ok(size),
            _ => Err(self.wrong(name, format!("1 to {limit}"), value)),
        }
    }

    /// A number above 0.
    fn positive(&self, name: &str, default: Option<f32>) -> Result<f32> {
        let key = self.key(name);
        let value = match default {
            Some(default) => self.metadata.opt_f32(&key)?.unwrap_or(default),
            None => self.metadata.f32(&key)?,
        };
        if value.is_finite() && value > 0.0 {
            Ok(value)
        } else {
            Err(self.wrong(name, "a finite number above 0", value))
        }
    }

    fn rope_scaling(&self) -> Result<RopeScaling> {
        let name = "rope.scaling.type";
        match self.metadata.opt_str(&self.key(name))? {
            // Files from before the key was named so have the factor of linear scaling alone.
            None if self.metadata.get(&self.key("rope.scale_linear")).is_some() => {
                Ok(RopeScaling::Linear { factor: self.positive("rope.scale_linear", None)? })
            }
            None | Some("none") => Ok(RopeScaling::None),
            Some("linear") => Ok(RopeScaling::Linear { factor: self.positive("rope.scaling.factor", None)? }),
            Some(other) => Err(ModelError::Unsupported {
                what: "this kind of rope scaling",
                key: self.key(name),
                got: quoted(other),
            }
            .into()),
        }
    }

    /// What changes the answers and is not built in must not be passed over.
    fn refuse_unsupported(&self) -> Result<()> {
        for (name, what) in [
            ("expert_count", "a mixture of experts"),
            ("attention.sliding_window", "sliding-window attention"),
        ] {
            let key = self.key(name);
            if let Some(got) = self.metadata.opt_u64(&key)?.filter(|&value| value != 0) {
                return Err(ModelError::Unsupported { what, key, got: got.to_string() }.into());
            }
        }
        Ok(())
    }
}
