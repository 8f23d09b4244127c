//! One row a sequence, of the rows of its tokens.

use super::Embedding;
use crate::{Checked, check::Check};
use halite_hal::{DType, Result, Tensor};

const CHECK: Check = Check("pool");

/// Which row stands for a sequence. A sequence without tokens gives zeros.
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
    /// What a step is checked against.
    fn limits(&self) -> PoolingLimits;
    /// Sequences of the current step.
    fn sequences(&self) -> usize;
    /// Tokens of the current step.
    fn tokens(&self) -> usize;
}

/// What [`CuSeqlens`] were checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolingLimits {
    /// The most sequences of a step.
    pub max_sequences: usize,
    /// The most tokens of a step.
    pub max_tokens: usize,
}

impl PoolingLimits {
    /// Of a plan.
    pub fn new(max_sequences: usize, max_tokens: usize) -> Self {
        PoolingLimits { max_sequences, max_tokens }
    }
}

/// Where each sequence of a step begins and ends.
#[derive(Clone, Copy, Debug)]
pub struct CuSeqlens<'a> {
    /// `[sequences + 1]`, from 0 on, never falling: sequence `i` has rows `cu_seqlens[i]..cu_seqlens[i + 1]`.
    pub cu_seqlens: &'a [u32],
}

impl CuSeqlens<'_> {
    /// Checks the lengths against the plan.
    ///
    /// # Errors
    /// No lengths, a first that is not 0, a falling pair, more sequences or tokens than planned.
    pub fn check(self, plan: &impl PoolingPlan) -> Result<Checked<Self, PoolingLimits>> {
        let (limits, starts) = (plan.limits(), self.cu_seqlens);
        let [first, .., last] = *starts else {
            let single = matches!(starts, [0]);
            CHECK.that(single, "cu_seqlens", "a 0, and the end of each sequence", starts)?;
            return Ok(Checked::with_context(self, limits));
        };
        CHECK.that(first == 0, "cu_seqlens", "0 first", first)?;
        if let Some([start, end]) = starts.array_windows().find(|[start, end]| start > end) {
            return Err(CHECK.wrong("cu_seqlens", "no falling numbers", format!("{end} after {start}")));
        }
        CHECK.limit("sequences", starts.len() - 1, limits.max_sequences)?;
        CHECK.limit("tokens", last as usize, limits.max_tokens)?;
        Ok(Checked::with_context(self, limits))
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
