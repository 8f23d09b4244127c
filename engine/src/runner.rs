//! The border between what knows the device and what does not: above it is no type parameter.

use crate::Result;
use crate::options::WeightsFormat;
use halite_hal::DeviceInfo;
use halite_kernels::cache::KvFormat;
use halite_kernels::logits::{LogitsRow, Penalties};
use halite_kernels::sampling::SamplingParams;
use std::collections::BTreeMap;
use std::ops::Range;

/// What a loaded model is, in the words and units a person asks for.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ModelInfo {
    /// `general.architecture` of the file.
    pub architecture: String,
    /// `general.name` of the file.
    pub name: Option<String>,
    /// Decoder layers.
    pub layers: usize,
    /// Elements of a hidden state.
    pub hidden: usize,
    /// Query heads.
    pub query_heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Elements of a head.
    pub head_dim: usize,
    /// Token ids; logits have as many columns.
    pub vocabulary: usize,
    /// Weights in all, a tied output layer counted once.
    pub parameters: u64,
    /// The most tokens of a sequence here.
    pub context: usize,
    /// The most tokens of a sequence that the model was made for.
    pub model_context: usize,
    /// How weights are kept.
    pub weights: WeightsFormat,
    /// Bytes of the weights as kept, a tied output layer counted twice, as it is kept twice.
    pub weight_bytes: u64,
    /// Whether they are what an earlier start kept; see [`weights_cache`](crate::weights_cache).
    pub weights_restored: bool,
    /// How keys and values are kept.
    pub kv_format: KvFormat,
    /// Tokens of a KV block.
    pub block_size: usize,
    /// KV blocks.
    pub kv_blocks: usize,
    /// Bytes of the KV cache.
    pub kv_bytes: u64,
    /// Where it runs.
    pub device: DeviceInfo,
}

/// The largest step that a runner takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StepLimits {
    /// Tokens of a step, over all sequences.
    pub max_tokens: usize,
    /// Sequences of a step.
    pub max_sequences: usize,
}

/// One sequence's part of a step.
#[derive(Clone, Copy, Debug)]
pub struct SequencePart<'a> {
    /// Position of the first of `tokens`.
    pub start: usize,
    /// Token ids, at positions `start..`.
    pub tokens: &'a [u32],
    /// `[tokens]`: where each token's keys and values go; see [`SlotMapping`](halite_kernels::cache::SlotMapping).
    pub slot_mapping: &'a [i64],
    /// Blocks that hold positions `0..start + tokens`.
    pub block_table: &'a [u32],
}

/// The most logit biases of a request.
pub const MAX_LOGIT_BIASES: usize = 1024;

/// What a request asks of its logits; see [`logits`](halite_kernels::logits).
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Adjustment {
    /// What tokens lose that were there already.
    pub penalties: Penalties,
    /// Tokens of the prompt.
    pub prompt: Vec<u32>,
    /// Tokens drawn since.
    pub output: Vec<u32>,
    /// What is added to a token's logit, in ascending order of the token.
    pub bias: Vec<(u32, f32)>,
}

impl Adjustment {
    /// Before the first token is drawn. `None`: nothing is asked.
    pub fn of(penalties: Penalties, prompt: &[u32], bias: Vec<(u32, f32)>) -> Option<Self> {
        let history = if penalties == Penalties::NONE { Vec::new() } else { prompt.to_vec() };
        let asked = Self { penalties, prompt: history, output: Vec::new(), bias };
        (asked.penalties != Penalties::NONE || !asked.bias.is_empty()).then_some(asked)
    }

    /// As the operator takes it.
    pub fn row(&self) -> LogitsRow<'_> {
        LogitsRow::unchanged()
            .with_penalties(self.penalties, &self.prompt, &self.output)
            .with_bias(&self.bias)
    }
}

/// One step: parts of sequences side by side, and what is wanted of their rows.
///
/// Rows are numbered over the whole step, in the order of [`push`](Self::push). A row may be wanted more than once.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StepBatch {
    /// `[rows]`: token ids.
    pub tokens: Vec<u32>,
    /// `[rows]`: positions in their sequences.
    pub positions: Vec<u32>,
    /// `[rows]`: slots of the KV cache.
    pub slot_mapping: Vec<i64>,
    /// `[sequences + 1]`: where each sequence's rows begin and end.
    pub cu_seqlens: Vec<u32>,
    /// `[sequences]`: cached positions, this step's included.
    pub kv_lens: Vec<u32>,
    /// `[sequences]`: the blocks of each.
    pub block_tables: Vec<Vec<u32>>,
    /// Rows after which a token is drawn, and how.
    pub samples: Vec<(usize, SamplingParams)>,
    /// By place in `samples`: what is asked of the logits before the token is drawn.
    pub adjustments: BTreeMap<usize, Adjustment>,
    /// Rows and tokens whose log-probability after the row is wanted.
    pub log_probs: Vec<(usize, u32)>,
    /// Rows whose logits are wanted.
    pub logits: Vec<usize>,
}

impl Default for StepBatch {
    fn default() -> Self {
        Self {
            tokens: Vec::new(),
            positions: Vec::new(),
            slot_mapping: Vec::new(),
            cu_seqlens: vec![0],
            kv_lens: Vec::new(),
            block_tables: Vec::new(),
            samples: Vec::new(),
            adjustments: BTreeMap::new(),
            log_probs: Vec::new(),
            logits: Vec::new(),
        }
    }
}

impl StepBatch {
    /// A step of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a part of a sequence; returns its rows.
    pub fn push(&mut self, part: SequencePart<'_>) -> Range<usize> {
        let first = self.tokens.len();
        // A position that no integer holds becomes one that the operators' checks refuse.
        let end = part.start.saturating_add(part.tokens.len());
        let position = |position: usize| u32::try_from(position).unwrap_or(u32::MAX);
        self.tokens.extend_from_slice(part.tokens);
        self.positions.extend((part.start..end).map(position));
        self.slot_mapping.extend_from_slice(part.slot_mapping);
        self.cu_seqlens.push(position(self.tokens.len()));
        self.kv_lens.push(position(end));
        self.block_tables.push(part.block_table.to_vec());
        first..self.tokens.len()
    }

    /// Sequences of the step.
    pub fn sequences(&self) -> usize {
        self.kv_lens.len()
    }
}

/// What came of a step, in the order it was asked for.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct StepOutput {
    /// `[samples]`: the tokens drawn.
    pub tokens: Vec<u32>,
    /// `[log_probs]`: natural logarithms.
    pub log_probs: Vec<f32>,
    /// `[logits, vocabulary]`.
    pub logits: Vec<f32>,
}

/// A model on a device.
pub trait Runner: Send {
    /// What it is.
    fn info(&self) -> &ModelInfo;

    /// The largest step it takes.
    fn limits(&self) -> StepLimits;

    /// Computes one step. Nothing of a step that failed may be relied on, and the runner works on.
    ///
    /// # Errors
    /// A step beyond the limits or with ids, slots, blocks or rows that are not there, or the device failed.
    fn step(&mut self, batch: &StepBatch) -> Result<StepOutput>;

    /// Reads KV blocks back in the canonical layout of docs/kv-layout.md.
    ///
    /// # Errors
    /// A block beyond the cache, or the device failed.
    fn export_blocks(&mut self, blocks: &[u32]) -> Result<Vec<u8>>;

    /// Writes KV blocks from the canonical layout.
    ///
    /// # Errors
    /// A block beyond the cache or named twice, another number of bytes, or the device failed.
    fn import_blocks(&mut self, blocks: &[u32], bytes: &[u8]) -> Result<()>;
}
