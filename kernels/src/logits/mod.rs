//! What a request asks of its logits before a token is drawn: penalties, biases, and the tokens that a grammar allows.
//!
//! `adjust_logits` changes F32 logits `[rows, vocabulary]` in place, each row by itself. All of it is F32 arithmetic,
//! rounded after every operation, in this order:
//! 1. repetition, on each token of the prompt or the output, once however often it comes (Keskar et al. 2019,
//!    arXiv:1909.05858, section 4.1; the sign as in common use, so that a penalty above 1 always makes a token less
//!    likely): `x = x / repetition` where `x > 0`, else `x = x · repetition`;
//! 2. frequency and presence, on each token of the output, `n` times there (OpenAI's API reference):
//!    `x = x - frequency · n`, then `x = x - presence`;
//! 3. bias: `x = x + bias`;
//! 4. the mask: `x = -inf` where the token is forbidden; an allowed `x` that is NaN or below the least finite F32
//!    becomes that least finite F32.
//!
//! So an allowed token ranks above every forbidden one whatever the model says, and a forbidden token has no weight: the
//! operators of [`sampling`](crate::sampling) never take it. A row without a request for change keeps its bits.
//!
//! The masks are bits, 32 in a word: token `t` is bit `t % 32`, lowest first, of word `t / 32`, and 1 means allowed. Bits
//! beyond the vocabulary count for nothing. A mask that allows no token at all is refused, since nothing could be drawn.

mod row;
mod table;

pub use row::{LogitsRow, Penalties, SeenToken};
pub use table::LogitsTable;

use crate::{Checked, Support, check::Check};
use halite_hal::{DType, Device, Result, Tensor};

const CHECK: Check = Check("logits");

/// Over which vocabulary.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct LogitsSpec {
    /// Columns of the logits.
    pub vocabulary: usize,
}

impl LogitsSpec {
    /// F32 logits over `vocabulary` tokens.
    pub fn new(vocabulary: usize) -> Self {
        LogitsSpec { vocabulary }
    }

    /// Checks that the specification makes sense.
    ///
    /// # Errors
    /// An empty vocabulary, or one beyond I32 ids.
    pub fn check(&self) -> Result<()> {
        CHECK.positive("vocabulary", self.vocabulary)?;
        CHECK.limit("vocabulary", self.vocabulary, i32::MAX as usize)
    }

    /// Words of a row's mask.
    pub fn mask_words(&self) -> usize {
        self.vocabulary.div_ceil(32)
    }
}

/// What a plan has room for in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogitsCapacity {
    /// Rows.
    pub max_rows: usize,
    /// Tokens of the prompts and outputs of all rows that have penalties.
    pub max_history: usize,
    /// Biases of all rows.
    pub max_biases: usize,
}

impl LogitsCapacity {
    /// Masks for this many rows, and neither penalties nor biases.
    pub fn rows(max_rows: usize) -> Self {
        LogitsCapacity { max_rows, max_history: 0, max_biases: 0 }
    }

    /// Room for this many tokens of prompts and outputs.
    pub fn with_history(mut self, max_history: usize) -> Self {
        self.max_history = max_history;
        self
    }

    /// Room for this many biases.
    pub fn with_biases(mut self, max_biases: usize) -> Self {
        self.max_biases = max_biases;
        self
    }
}

/// What a backend's plan tells of itself.
pub trait LogitsPlan {
    /// What it was planned for.
    fn spec(&self) -> &LogitsSpec;
    /// What it has room for.
    fn capacity(&self) -> &LogitsCapacity;
    /// Rows of the current step.
    fn rows(&self) -> usize;

    /// What a step is checked against.
    fn limits(&self) -> LogitsLimits {
        LogitsLimits { vocabulary: self.spec().vocabulary, capacity: *self.capacity() }
    }
}

/// What a [`LogitsStep`] was checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogitsLimits {
    /// Columns of the logits.
    pub vocabulary: usize,
    /// What the plan has room for.
    pub capacity: LogitsCapacity,
}

/// A step's requests, on the host.
#[derive(Clone, Copy, Debug)]
pub struct LogitsStep<'a> {
    /// `[rows]`.
    pub rows: &'a [LogitsRow<'a>],
}

impl LogitsStep<'_> {
    /// Checks the requests against the plan.
    ///
    /// # Errors
    /// More rows, tokens or biases than planned, or what [`LogitsRow::check`] refuses.
    pub fn check(self, plan: &impl LogitsPlan) -> Result<Checked<Self, LogitsLimits>> {
        let capacity = plan.capacity();
        CHECK.limit("rows", self.rows.len(), capacity.max_rows)?;
        self.rows.iter().try_for_each(|row| row.check(plan.spec()))?;
        let history = self.rows.iter().map(LogitsRow::history).sum();
        CHECK.limit("history", history, capacity.max_history)?;
        let biases = self.rows.iter().map(|row| row.bias.len()).sum();
        CHECK.limit("biases", biases, capacity.max_biases)?;
        Ok(Checked::with_context(self, plan.limits()))
    }
}

/// One call, in place.
#[derive(Clone, Debug)]
pub struct LogitsArgs<'a, B: LogitOps> {
    /// The plan, as last updated.
    pub plan: &'a B::LogitsPlan,
    /// F32 `[rows, vocabulary]`.
    pub logits: &'a Tensor<B>,
}

impl<B: LogitOps> LogitsArgs<'_, B> {
    /// Checks shape and type.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument.
    pub fn check(self) -> Result<Checked<Self>> {
        CHECK.tensor("logits", self.logits, DType::F32, &[self.plan.rows(), self.plan.spec().vocabulary])?;
        Ok(Checked::new(self))
    }
}

/// The family's trait.
pub trait LogitOps: Device {
    /// Requests at stable addresses.
    type LogitsPlan: LogitsPlan + std::fmt::Debug + Send + 'static;

    /// Whether and how the backend runs `spec`.
    fn logits_supports(&self, spec: &LogitsSpec) -> Support;

    /// Allocates a plan.
    ///
    /// # Errors
    /// An unsupported spec, or no memory.
    fn logits_plan(&self, spec: &LogitsSpec, capacity: &LogitsCapacity) -> Result<Self::LogitsPlan>;

    /// Uploads a step's requests, once a step.
    ///
    /// # Errors
    /// A step that was checked against another plan's limits, or the device's.
    fn logits_update(
        &self,
        stream: &mut Self::Stream,
        plan: &mut Self::LogitsPlan,
        step: &Checked<LogitsStep<'_>, LogitsLimits>,
    ) -> Result<()>;

    /// Changes logits in place.
    ///
    /// # Errors
    /// The device's.
    fn adjust_logits(&self, stream: &mut Self::Stream, args: Checked<LogitsArgs<'_, Self>>) -> Result<()>;
}
