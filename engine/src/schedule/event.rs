//! What comes out of the scheduler.

use super::plan::StepId;
use super::sequence::SequenceId;

/// Why a sequence ended. Each of them is final and has given the sequence's blocks back.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FinishReason {
    /// A stop token was sampled, or whoever reads the answer found its end in it.
    Stop,
    /// `max_tokens`, the model's context or the KV cache was reached.
    Length,
    /// Somebody no longer wants it.
    Cancelled,
    /// It could not be computed.
    Error(String),
}

/// A sequence that ended, and what it came to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finished {
    /// Which sequence.
    pub id: SequenceId,
    /// Why it ended.
    pub reason: FinishReason,
    /// Its answer, without the stop token.
    pub generated: Vec<u32>,
    /// Tokens of its prompt.
    pub prompt_tokens: usize,
    /// Tokens of its prompt whose KV was found in the cache when it first ran.
    pub cached_tokens: usize,
    /// How often it lost its blocks to older sequences.
    pub preemptions: usize,
}

/// One thing that happened to one sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepEvent {
    /// The answer got longer by `token`. Stop tokens are not reported.
    Token {
        /// Whose answer.
        id: SequenceId,
        /// The token.
        token: u32,
    },
    /// The sequence ended; no more events will name it.
    Finished(Finished),
}

/// Results that do not belong to the step in flight. Nothing has changed: it can still be completed, or planned anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StepError {
    /// The step was completed already, or another was scheduled since.
    #[error("step {} is not the one in flight ({})", .got.get(), describe(.expected))]
    Stale {
        /// The step in flight.
        expected: Option<StepId>,
        /// The step completed.
        got: StepId,
    },
    /// A sequence that wanted logits has no token. If it could not be computed, [`fail`](super::Scheduler::fail) it first.
    #[error("sequence {} wanted logits, but no token was sampled for it", .id.get())]
    MissingToken {
        /// Which sequence.
        id: SequenceId,
    },
    /// A token for a sequence that did not want logits in this step.
    #[error("a token was sampled for sequence {}, which wanted none in this step", .id.get())]
    UnexpectedToken {
        /// Which sequence.
        id: SequenceId,
    },
    /// Two tokens for one sequence.
    #[error("two tokens were sampled for sequence {}", .id.get())]
    TwoTokens {
        /// Which sequence.
        id: SequenceId,
    },
}

fn describe(expected: &Option<StepId>) -> String {
    expected.map_or_else(|| "none".to_owned(), |step| step.get().to_string())
}
