//! What a person chooses when a model is loaded.

use crate::EngineError;
use crate::schedule::PrefixReuse;
use crate::weights_cache::WeightsCache;
use halite_hal::DType;
use halite_kernels::attention::AttentionCompute;
use halite_kernels::cache::KvFormat;
use std::{fmt, str::FromStr};

/// The longest context taken when none is asked for: a model's own may need more memory than anybody expects.
pub const DEFAULT_CONTEXT: usize = 8192;

/// How much KV memory is taken, at most, when none is asked for.
pub const DEFAULT_KV_BYTES: u64 = 2 << 30;

/// How a model's weights are kept in memory, whatever the file holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WeightsFormat {
    /// INT8 with one scale an output channel; activations are quantised per token, but for those of the output layer, which
    /// stay F32. A quarter of F32.
    #[default]
    W8a8,
    /// BF16, with F32 activations. Half of F32.
    Bf16,
    /// F32, the file's values exactly.
    F32,
    /// 4 bits with a scale a group of 32 values; activations are quantised per token. Matrices that the file has in blocks
    /// of 4 bits (Q4_0, Q4_1, Q4_K) are used as they are; others are quantised here. The output layer and the embedding
    /// table are INT8. A sixth to a fifth of F32.
    W4a8,
}

impl WeightsFormat {
    /// Every format.
    pub const ALL: [Self; 4] = [Self::W8a8, Self::W4a8, Self::Bf16, Self::F32];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::W8a8 => "w8a8",
            Self::W4a8 => "w4a8",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
        }
    }

    /// The format whose weights the output layer (the vocabulary projection) has.
    ///
    /// With W4A8 it is W8A8, whole. With W8A8 its weights are INT8 but its activations stay F32: their rounding goes straight into
    /// the logits, and costs more accuracy than any other layer's. docs/numerics.md has the figures. A checkpoint whose layers are
    /// W8A8 already keeps its output layer as BF16.
    pub fn output_layer(self) -> Self {
        match self {
            Self::W8a8 | Self::W4a8 => Self::W8a8,
            Self::Bf16 | Self::F32 => self,
        }
    }

    /// The storage of keys and values that goes with it: no coarser than the weights.
    pub fn default_kv_format(self) -> KvFormat {
        KvFormat::Float(match self {
            Self::W8a8 | Self::W4a8 => DType::F16,
            Self::Bf16 => DType::Bf16,
            Self::F32 => DType::F32,
        })
    }
}

impl fmt::Display for WeightsFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for WeightsFormat {
    type Err = EngineError;

    fn from_str(text: &str) -> Result<Self, EngineError> {
        let found = Self::ALL.into_iter().find(|format| format.to_string() == text);
        found.ok_or_else(|| EngineError::option("weights", "w8a8, w4a8, bf16 or f32", text))
    }
}

/// How large the KV cache is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum KvCapacity {
    /// Room for one sequence of the whole context, or for 256 tokens of each of `max_sequences` if that is more, within
    /// [`DEFAULT_KV_BYTES`].
    #[default]
    Auto,
    /// As many whole blocks as fit into this many bytes.
    Bytes(u64),
    /// Room for this many tokens, rounded up to whole blocks.
    Tokens(usize),
}

/// What [`Engine::load`](crate::Engine::load) needs to know besides the model. The default suits one person's machine.
///
/// ```
/// use halite_engine::{EngineOptions, KvCapacity, WeightsFormat};
///
/// let options = EngineOptions::new().weights(WeightsFormat::Bf16).context(4096).kv(KvCapacity::Tokens(16_384));
/// assert_eq!(options.kv_format, None);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EngineOptions {
    /// How weights are kept.
    pub weights: WeightsFormat,
    /// How keys and values are kept. `None`: what goes with the weights.
    pub kv_format: Option<KvFormat>,
    /// In which arithmetic attention computes: INT8 products are faster with long prompts, need keys and values in INT8, which
    /// they then default to, and cost accuracy (docs/numerics.md).
    pub attention_compute: AttentionCompute,
    /// The size of the KV cache.
    pub kv: KvCapacity,
    /// Tokens of a KV block.
    pub block_size: usize,
    /// The most tokens of a sequence, prompt and answer together; at most what the model was made for.
    /// `None`: that, but no more than [`DEFAULT_CONTEXT`].
    pub context: Option<usize>,
    /// The most tokens that one step computes, over all sequences.
    pub max_batch_tokens: usize,
    /// The most tokens of one prompt that a step computes; at most `max_batch_tokens`. A step takes as long as its
    /// tokens do, and all sequences in it wait for it: a small chunk keeps a long prompt from delaying the next token
    /// of others, for a longer wait of its own. It changes no answer. `None`: `max_batch_tokens`.
    pub prefill_chunk: Option<usize>,
    /// The most sequences that run at once; at most `max_batch_tokens`.
    pub max_sequences: usize,
    /// The most requests that wait; more are refused.
    pub max_waiting: usize,
    /// Tokens that may be drawn, the first ones of the vocabulary. Output layers often have more rows than there are
    /// tokens, and a token without a text is no answer. `None`: as many as the tokenizer has. Log-probabilities are over
    /// all rows, drawn or not, as other programs give them.
    pub drawn_tokens: Option<usize>,
    /// Reuse of prefixes.
    pub prefix_reuse: PrefixReuse,
    /// Where converted weights are taken from, and kept for later starts; it has to be of the model that is loaded. `None`:
    /// they are converted at each start.
    pub weights_cache: Option<WeightsCache>,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            weights: WeightsFormat::default(),
            kv_format: None,
            attention_compute: AttentionCompute::default(),
            kv: KvCapacity::default(),
            block_size: 16,
            context: None,
            max_batch_tokens: 512,
            prefill_chunk: None,
            max_sequences: 32,
            max_waiting: 1024,
            drawn_tokens: None,
            prefix_reuse: PrefixReuse::default(),
            weights_cache: None,
        }
    }
}

impl EngineOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how weights are kept.
    #[must_use]
    pub fn weights(mut self, weights: WeightsFormat) -> Self {
        self.weights = weights;
        self
    }

    /// Sets how keys and values are kept.
    #[must_use]
    pub fn kv_format(mut self, format: KvFormat) -> Self {
        self.kv_format = Some(format);
        self
    }

    /// Keeps keys and values as floats of this type.
    #[must_use]
    pub fn kv_dtype(self, dtype: DType) -> Self {
        self.kv_format(KvFormat::Float(dtype))
    }

    /// Sets in which arithmetic attention computes.
    #[must_use]
    pub fn attention_compute(mut self, compute: AttentionCompute) -> Self {
        self.attention_compute = compute;
        self
    }

    /// Sets the size of the KV cache.
    #[must_use]
    pub fn kv(mut self, capacity: KvCapacity) -> Self {
        self.kv = capacity;
        self
    }

    /// Sets the tokens of a KV block.
    #[must_use]
    pub fn block_size(mut self, tokens: usize) -> Self {
        self.block_size = tokens;
        self
    }

    /// Sets the most tokens of a sequence.
    #[must_use]
    pub fn context(mut self, tokens: usize) -> Self {
        self.context = Some(tokens);
        self
    }

    /// Sets how many tokens may be drawn.
    #[must_use]
    pub fn drawn_tokens(mut self, tokens: usize) -> Self {
        self.drawn_tokens = Some(tokens);
        self
    }

    /// Sets the most tokens of a step.
    #[must_use]
    pub fn max_batch_tokens(mut self, tokens: usize) -> Self {
        self.max_batch_tokens = tokens;
        self
    }

    /// Sets the most tokens of one prompt in a step.
    #[must_use]
    pub fn prefill_chunk(mut self, tokens: usize) -> Self {
        self.prefill_chunk = Some(tokens);
        self
    }

    /// Sets the most sequences that run at once.
    #[must_use]
    pub fn max_sequences(mut self, sequences: usize) -> Self {
        self.max_sequences = sequences;
        self
    }

    /// Sets the most requests that wait.
    #[must_use]
    pub fn max_waiting(mut self, requests: usize) -> Self {
        self.max_waiting = requests;
        self
    }

    /// Sets whether prefixes are reused.
    #[must_use]
    pub fn prefix_reuse(mut self, reuse: PrefixReuse) -> Self {
        self.prefix_reuse = reuse;
        self
    }

    /// Sets where converted weights are kept.
    #[must_use]
    pub fn weights_cache(mut self, cache: WeightsCache) -> Self {
        self.weights_cache = Some(cache);
        self
    }

    /// The storage of keys and values.
    pub fn kept_kv_format(&self) -> KvFormat {
        let default = || match self.attention_compute {
            AttentionCompute::Int8 { .. } => KvFormat::Int8PerTokenHead,
            _ => self.weights.default_kv_format(),
        };
        self.kv_format.unwrap_or_else(default)
    }

    /// Checks what can be checked without the model.
    pub(crate) fn check(&self) -> Result<(), EngineError> {
        let at_least_one = [
            ("block_size", self.block_size),
            ("max_batch_tokens", self.max_batch_tokens),
            ("prefill_chunk", self.prefill_chunk.unwrap_or(self.max_batch_tokens)),
            ("max_sequences", self.max_sequences),
            ("max_waiting", self.max_waiting),
            ("drawn_tokens", self.drawn_tokens.unwrap_or(1)),
        ];
        if let Some((option, _)) = at_least_one.iter().find(|(_, value)| *value == 0) {
            return Err(EngineError::option(option, "at least 1", "0"));
        }
        // Buffers are made for these many rows; far more than any device is kept busy with.
        for (option, value, limit) in [
            ("max_batch_tokens", self.max_batch_tokens, MAX_BATCH_TOKENS),
            ("block_size", self.block_size, MAX_BLOCK_SIZE),
        ] {
            if value > limit {
                return Err(EngineError::option(option, format!("at most {limit}"), value.to_string()));
            }
        }
        for (option, value) in
            [("max_sequences", Some(self.max_sequences)), ("prefill_chunk", self.prefill_chunk)]
        {
            if let Some(value) = value.filter(|&value| value > self.max_batch_tokens) {
                let expected = format!("at most max_batch_tokens = {}", self.max_batch_tokens);
                return Err(EngineError::option(option, expected, value.to_string()));
            }
        }
        let kept = self.kept_kv_format();
        if self.attention_compute != AttentionCompute::Float && kept != KvFormat::Int8PerTokenHead {
            let got = format!("attention in INT8 products, and keys and values as {kept}");
            return Err(EngineError::option("kv_format", "INT8 keys and values for INT8 products", got));
        }
        match kept {
            KvFormat::Float(dtype) if !dtype.is_float() => {
                Err(EngineError::option("kv_format", "F32, F16, BF16 or scaled INT8", dtype.to_string()))
            }
            _ => Ok(()),
        }
    }
}

/// The largest `max_batch_tokens`.
const MAX_BATCH_TOKENS: usize = 1 << 16;
/// The largest `block_size`.
const MAX_BLOCK_SIZE: usize = 1 << 12;

/// What loading does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadStep {
    /// The file's tensors are converted; bytes are theirs.
    Converting,
    /// Converted weights that an earlier start kept are taken; bytes are theirs.
    Restoring,
    /// Weights that were converted are brought to the disk, for later starts; bytes are theirs.
    Keeping,
}

/// How far loading has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadProgress<'a> {
    /// What is done.
    pub step: LoadStep,
    /// The tensor converted or taken last.
    pub tensor: &'a str,
    /// Bytes so far.
    pub done: u64,
    /// Bytes in all.
    pub total: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_cannot_work_are_named() {
        let cases = [
            (EngineOptions::new().block_size(0), "block_size"),
            (EngineOptions::new().max_batch_tokens(0), "max_batch_tokens"),
            (EngineOptions::new().max_batch_tokens(usize::MAX), "max_batch_tokens"),
            (EngineOptions::new().prefill_chunk(0), "prefill_chunk"),
            (EngineOptions::new().prefill_chunk(513), "prefill_chunk"),
            (EngineOptions::new().max_sequences(513), "max_sequences"),
            (EngineOptions::new().max_waiting(0), "max_waiting"),
            (EngineOptions::new().drawn_tokens(0), "drawn_tokens"),
            (EngineOptions::new().kv_dtype(DType::I8), "kv_format"),
        ];
        for (options, name) in cases {
            let error = options.check().unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
        EngineOptions::new().check().unwrap();
    }

    #[test]
    fn formats_read_what_they_write() {
        for format in WeightsFormat::ALL {
            assert_eq!(format.to_string().parse::<WeightsFormat>().unwrap(), format);
        }
        assert!("int3".parse::<WeightsFormat>().unwrap_err().to_string().contains("int3"));
    }
}
