//! Sampling: the next token of each row of logits; its distribution; log-probabilities; verification of drafted tokens.
//!
//! Penalties, biases and masks come before all of it: [`logits`](crate::logits) applies them.
//!
//! Candidates are ordered by logit, highest first, ties by the lower id; a NaN ranks below -inf. Temperature 0 takes
//! the first. Otherwise, in this order:
//! 1. keep the first `top_k` (0: all), with `p = softmax(logit / temperature)` over those kept;
//! 2. keep the shortest prefix whose sum of `p` reaches `top_p` (Holtzman et al. 2019, arXiv:1904.09751);
//! 3. keep those with `p ≥ min_p · max p` (Nguyen et al. 2024, arXiv:2407.01082);
//! 4. with `u = uniform(seed, position)`, take the first whose running sum exceeds `u` times the sum of those kept.
//!
//! A NaN weighs nothing. A row whose greatest logit is not finite has no weights: its first candidate is taken.
//! The draw depends on the row's own seed and position only: never on the batch. A token without weight is never drawn.
//!
//! How tokens are verified that a smaller model drafted stands at [`VerifyArgs`].

mod log_probs;
mod params;
mod verify;
mod words;

pub use log_probs::{LogProbArgs, TopLogProbs};
pub use params::{SamplingParams, acceptance_uniform, residual_uniform, uniform};
pub use verify::{DraftProbabilities, VerifyArgs, VerifyCapacity, VerifyLimits, VerifyPlan, VerifyStep};
pub use words::{ROW_WORDS, weight_bits};

use crate::{Checked, Support, check::Check};
use halite_hal::{DType, Device, Result, Tensor};

const CHECK: Check = Check("sampling");

/// Over which vocabulary.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SamplingSpec {
    /// Columns of the logits.
    pub vocabulary: usize,
}

impl SamplingSpec {
    /// F32 logits over `vocabulary` tokens.
    pub fn new(vocabulary: usize) -> Self {
        SamplingSpec { vocabulary }
    }

    /// Checks that the specification makes sense.
    ///
    /// # Errors
    /// An empty vocabulary, or one beyond I32 ids.
    pub fn check(&self) -> Result<()> {
        CHECK.positive("vocabulary", self.vocabulary)?;
        CHECK.limit("vocabulary", self.vocabulary, i32::MAX as usize)
    }
}

/// What a backend's plan tells of itself.
pub trait SamplingPlan {
    /// What it was planned for.
    fn spec(&self) -> &SamplingSpec;
    /// The largest number of rows.
    fn max_rows(&self) -> usize;
    /// Rows of the current step.
    fn rows(&self) -> usize;

    /// What a step is checked against.
    fn limits(&self) -> SamplingLimits {
        SamplingLimits { max_rows: self.max_rows() }
    }
}

/// What a [`SamplingStep`] was checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SamplingLimits {
    /// The largest number of rows.
    pub max_rows: usize,
}

/// A step's parameters, on the host.
#[derive(Clone, Copy, Debug)]
pub struct SamplingStep<'a> {
    /// `[rows]`.
    pub params: &'a [SamplingParams],
}

impl SamplingStep<'_> {
    /// Checks the parameters against the plan.
    ///
    /// # Errors
    /// More rows than planned, or parameters out of range.
    pub fn check(self, plan: &impl SamplingPlan) -> Result<Checked<Self, SamplingLimits>> {
        CHECK.limit("rows", self.params.len(), plan.max_rows())?;
        self.params.iter().try_for_each(SamplingParams::check)?;
        Ok(Checked::with_context(self, plan.limits()))
    }
}

/// One call: a token for each row.
#[derive(Clone, Debug)]
pub struct SamplingArgs<'a, B: Sampling> {
    /// The plan, as last updated.
    pub plan: &'a B::SamplingPlan,
    /// F32 `[rows, vocabulary]`.
    pub logits: &'a Tensor<B>,
    /// I32 `[rows]`: always within the vocabulary.
    pub ids: &'a Tensor<B>,
}

impl<B: Sampling> SamplingArgs<'_, B> {
    /// Checks shapes and types.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument.
    pub fn check(self) -> Result<Checked<Self>> {
        let rows = self.plan.rows();
        CHECK.tensor("logits", self.logits, DType::F32, &[rows, self.plan.spec().vocabulary])?;
        CHECK.tensor("ids", self.ids, DType::I32, &[rows])?;
        CHECK.disjoint("ids", self.ids, &[("logits", Some(self.logits))])?;
        Ok(Checked::new(self))
    }
}

/// One call: the distribution that steps 1 to 3 leave of each row, which a draw of step 4 follows.
///
/// `out[r, t]` is `p` of token `t` divided by the sum of those kept, and 0 for the others. At temperature 0, and in a row
/// that has no weights, it is 1 for the first candidate. With temperature 1 and all tokens kept it is the softmax.
#[derive(Clone, Debug)]
pub struct ProbabilityArgs<'a, B: Sampling> {
    /// The plan, as last updated.
    pub plan: &'a B::SamplingPlan,
    /// F32 `[rows, vocabulary]`.
    pub logits: &'a Tensor<B>,
    /// F32 `[rows, vocabulary]`.
    pub out: &'a Tensor<B>,
}

impl<B: Sampling> ProbabilityArgs<'_, B> {
    /// Checks shapes and types.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument.
    pub fn check(self) -> Result<Checked<Self>> {
        let dims = [self.plan.rows(), self.plan.spec().vocabulary];
        CHECK.tensor("logits", self.logits, DType::F32, &dims)?;
        CHECK.tensor("out", self.out, DType::F32, &dims)?;
        CHECK.disjoint("out", self.out, &[("logits", Some(self.logits))])?;
        Ok(Checked::new(self))
    }
}

/// The family's trait.
pub trait Sampling: Device {
    /// Parameters at stable addresses.
    type SamplingPlan: SamplingPlan + std::fmt::Debug + Send + 'static;
    /// Drafts' lengths and parameters at stable addresses.
    type VerifyPlan: VerifyPlan + std::fmt::Debug + Send + 'static;

    /// Whether and how the backend runs `spec`.
    fn sampling_supports(&self, spec: &SamplingSpec) -> Support;

    /// Plans for steps of up to `max_rows` rows: allocates, once.
    ///
    /// # Errors
    /// A spec that makes no sense or is not supported, or no memory.
    fn sampling_plan(&self, spec: &SamplingSpec, max_rows: usize) -> Result<Self::SamplingPlan>;

    /// Uploads a step's parameters: once a step.
    ///
    /// # Errors
    /// The device's.
    fn sampling_update(
        &self,
        stream: &mut Self::Stream,
        plan: &mut Self::SamplingPlan,
        step: &Checked<SamplingStep<'_>, SamplingLimits>,
    ) -> Result<()>;

    /// Takes a token for each row.
    ///
    /// # Errors
    /// The device's.
    fn sample(&self, stream: &mut Self::Stream, args: Checked<SamplingArgs<'_, Self>>) -> Result<()>;

    /// The distribution of each row.
    ///
    /// # Errors
    /// The device's.
    fn probabilities(
        &self,
        stream: &mut Self::Stream,
        args: Checked<ProbabilityArgs<'_, Self>>,
    ) -> Result<()>;

    /// Allocates a plan for drafted tokens.
    ///
    /// # Errors
    /// An unsupported spec, or no memory.
    fn verify_plan(&self, spec: &SamplingSpec, capacity: &VerifyCapacity) -> Result<Self::VerifyPlan>;

    /// Uploads a step's drafts' lengths and parameters, once a step.
    ///
    /// # Errors
    /// A step that was checked against another plan's limits, or the device's.
    fn verify_update(
        &self,
        stream: &mut Self::Stream,
        plan: &mut Self::VerifyPlan,
        step: &Checked<VerifyStep<'_>, VerifyLimits>,
    ) -> Result<()>;

    /// Which drafted tokens stand, and the token after them.
    ///
    /// # Errors
    /// The device's.
    fn verify(&self, stream: &mut Self::Stream, args: Checked<VerifyArgs<'_, Self>>) -> Result<()>;

    /// Log-probabilities of given tokens, the highest of each row, and the log-softmax of whole rows.
    ///
    /// # Errors
    /// The device's.
    fn log_probs(&self, stream: &mut Self::Stream, args: Checked<LogProbArgs<'_, Self>>) -> Result<()>;
}
