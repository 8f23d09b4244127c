//! What one forward pass has to compute.

use std::ops::Range;

use super::sequence::SequenceId;

/// Names a step, so that its results are not taken for another's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepId(pub(super) u64);

impl StepId {
    /// The id as a number, for logs.
    pub fn get(self) -> u64 {
        self.0
    }
}

/// The part of one sequence in a step: queries for `range` that attend to the first `range.end` tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScheduledSequence {
    /// Whose tokens these are.
    pub id: SequenceId,
    /// The positions to compute, never empty. Position 0 is the first token of the prompt.
    pub range: Range<usize>,
    /// The token ids at these positions: `[range.len()]`.
    pub tokens: Vec<u32>,
    /// Where the KV of each token goes, `block * block_size + offset`: `[range.len()]`. No two tokens of a step have
    /// the same slot, and none is in a block another sequence reads.
    pub slot_mapping: Vec<i64>,
    /// The blocks of the first `range.end` tokens, which are in the KV cache once this step's are written:
    /// `[ceil(range.end / block_size)]`.
    pub block_table: Vec<u32>,
    /// Whether the range reaches the last known token, so that a token has to be sampled after it.
    pub wants_logits: bool,
}

/// One step: sequences that compute a single token (all that decode) first, then those with a longer part of their
/// prompt, each in order of admission.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StepPlan {
    /// To be handed to [`Scheduler::complete`](super::Scheduler::complete).
    pub id: StepId,
    /// What to compute. Empty only if nothing is unfinished.
    pub sequences: Vec<ScheduledSequence>,
    /// Sequences that lost their blocks to older ones and will compute their KV again; they are not in this step.
    pub preempted: Vec<SequenceId>,
}

impl StepPlan {
    pub(super) fn new(id: StepId) -> Self {
        Self { id, sequences: Vec::new(), preempted: Vec::new() }
    }

    /// Tokens to compute, over all sequences.
    pub fn num_tokens(&self) -> usize {
        self.sequences.iter().map(|sequence| sequence.range.len()).sum()
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.sequences.is_empty()
    }
}
