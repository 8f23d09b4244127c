//! One row a sequence, of the rows of its tokens.

use super::Embedding;
use crate::{Checked, check::Check};
use halite_hal::{DType, Result, Tensor};

const CHECK: Check = Check("pool");

/// Which row stands for a sequence. A sequence without tokens gives zeros.
///
/// A NaN or an infinity stays in its column of its own sequence. Sums beyond the input's type are right; beyond F32 they
/// are infinite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Pooling {
    /// The first token's (BERT's CLS).
    First,
    /// The last token's.
    Last,
    /// The mean: `sum / count`, the sum in F32 in the order of tokens.
    Mean,
}

/// Which pooling, from and to which type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct PoolingSpec {
    /// Which row.
    pub pooling: Pooling,
    /// Type of the tokens' rows.
    pub input: DType,
    /// Type of the sequences' rows.
    pub output: DType,
}

impl PoolingSpec {
    /// From F32 to F32.
    pub fn new(pooling: Pooling) -> Self {
        PoolingSpec { pooling, input: DType::F32, output: DType::F32 }
    }

    /// Another input type.
    pub fn with_input(mut self, input: DType) -> Self {
        self.input = input;
        self
    }

    /// Another output type.
    pub fn with_output(mut self, output: DType) -> Self {
        self.output = output;
        self
    }
}

/// What a backend's plan tells of itself.
pub trait PoolingPlan {
    /// What it was planned for.
    fn spec(&self) -> &PoolingSpec;
    /// The largest number of sequences of a step.
    fn max_sequences(&self) -> usize;
    /// The largest number of tokens of a step.
    fn max_tokens(&self) -> usize;
    /// Sequences of the current step.
    fn sequences(&self) -> usize;
    /// Tokens of the current step.
    fn tokens(&self) -> usize;

    /// What a step is checked against.
    fn limits(&self) -> PoolingLimits {
        PoolingLimits { max_sequences: self.max_sequences(), max_tokens: self.max_tokens() }
    }
}

/// What a [`PoolingStep`] was checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolingLimits {
    /// The largest number of sequences of a step.
    pub max_sequences: usize,
    /// The largest number of tokens of a step.
    pub max_tokens: usize,
}

/// Where each sequence of a step begins and ends.
#[derive(Clone, Copy, Debug)]
pub struct PoolingStep<'a> {
    /// `[sequences + 1]`, from 0 on, never falling: sequence `i` has rows `cu_seqlens[i]..cu_seqlens[i + 1]`.
    pub cu_seqlens: &'a [u32],
}

impl PoolingStep<'_> {
    /// Checks the lengths against the plan.
    ///
    /// # Errors
    /// No lengths, a first that is not 0, a falling pair, more sequences or tokens than planned.
    pub fn check(self, plan: &impl PoolingPlan) -> Result<Checked<Self, PoolingLimits>> {
        let sequences = self.cu_seqlens.len().saturating_sub(1);
        CHECK.offsets("cu_seqlens", self.cu_seqlens, sequences)?;
        CHECK.limit("sequences", sequences, plan.max_sequences())?;
        CHECK.limit("tokens", self.cu_seqlens[sequences] as usize, plan.max_tokens())?;
        Ok(Checked::with_context(self, plan.limits()))
    }
}

/// One call.
#[derive(Clone, Debug)]
pub struct PoolArgs<'a, B: Embedding> {
    /// The plan, as last updated.
    pub plan: &'a B::PoolingPlan,
    /// `[tokens, hidden]` of the spec's input type.
    pub x: &'a Tensor<B>,
    /// `[sequences, hidden]` of the spec's output type, apart from `x`.
    pub out: &'a Tensor<B>,
}

impl<B: Embedding> PoolArgs<'_, B> {
    /// Checks shapes and types.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument.
    pub fn check(self) -> Result<Checked<Self>> {
        let spec = self.plan.spec();
        CHECK.rows("x", self.x, 2)?;
        let hidden = self.x.dims()[1];
        CHECK.tensor("x", self.x, spec.input, &[self.plan.tokens(), hidden])?;
        CHECK.tensor("out", self.out, spec.output, &[self.plan.sequences(), hidden])?;
        CHECK.disjoint("out", self.out, &[("x", Some(self.x))])?;
        Ok(Checked::new(self))
    }
}
