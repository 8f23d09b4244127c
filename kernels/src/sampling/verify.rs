//! Verification of tokens that a smaller model, or a guess, drafted.

use super::{CHECK, Sampling, SamplingParams, SamplingSpec};
use crate::Checked;
use halite_hal::{DType, Device, Result, Tensor};

/// What a plan has room for in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyCapacity {
    /// Requests.
    pub max_requests: usize,
    /// Drafted tokens of all of them.
    pub max_drafts: usize,
}

impl VerifyCapacity {
    /// So many requests, with so many drafted tokens together.
    pub fn new(max_requests: usize, max_drafts: usize) -> Self {
        VerifyCapacity { max_requests, max_drafts }
    }
}

/// What a backend's plan tells of itself.
pub trait VerifyPlan {
    /// What it was planned for.
    fn spec(&self) -> &SamplingSpec;
    /// What it has room for.
    fn capacity(&self) -> &VerifyCapacity;
    /// Requests of the current step.
    fn requests(&self) -> usize;
    /// Drafted tokens of the current step.
    fn drafts(&self) -> usize;

    /// What a step is checked against.
    fn limits(&self) -> VerifyLimits {
        VerifyLimits { capacity: *self.capacity() }
    }
}

/// What a [`VerifyStep`] was checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyLimits {
    /// What the plan has room for.
    pub capacity: VerifyCapacity,
}

/// A step's requests, on the host.
#[derive(Clone, Copy, Debug)]
pub struct VerifyStep<'a> {
    /// `[requests]`; each position is that of the request's first drafted token.
    pub params: &'a [SamplingParams],
    /// `[requests + 1]`: request `r` drafted tokens `cu_drafts[r]..cu_drafts[r + 1]`, possibly none.
    pub cu_drafts: &'a [u32],
}

impl VerifyStep<'_> {
    /// Checks the requests against the plan.
    ///
    /// # Errors
    /// More requests or tokens than planned, parameters out of range, or offsets that do not ascend from 0 on.
    pub fn check(self, plan: &impl VerifyPlan) -> Result<Checked<Self, VerifyLimits>> {
        let VerifyCapacity { max_requests, max_drafts } = *plan.capacity();
        let requests = self.params.len();
        CHECK.limit("requests", requests, max_requests)?;
        self.params.iter().try_for_each(SamplingParams::check)?;
        CHECK.offsets("cu_drafts", self.cu_drafts, requests)?;
        CHECK.limit("drafts", self.cu_drafts.last().map_or(0, |&drafts| drafts as usize), max_drafts)?;
        Ok(Checked::with_context(self, plan.limits()))
    }
}

/// What is known of the distributions that drafted tokens were drawn from.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum DraftProbabilities<'a, D: Device> {
    /// They were not drawn at all: the draft is a choice, such as the greedy one or a text found again.
    Chosen,
    /// F32 `[drafts, vocabulary]`: row `i` is the distribution that drafted token `i` was drawn from.
    Drawn(&'a Tensor<D>),
}

/// One call: how many drafted tokens of each request stand, and the token after them.
///
/// A request with `d` drafted tokens `x` has `d + 1` rows of logits: row `i` is what the model says of the place of `x[i]`
/// after those before it, and the last row of the place after all of them. `p[i]` is the distribution of row `i` by the
/// request's parameters (steps 1 to 3 of [`sampling`](super)). Place `i` has the position `position + i`.
///
/// - [`Chosen`](DraftProbabilities::Chosen): `x[i]` stands if it is the token that `sample` takes of row `i`. The next
///   token is what `sample` takes of the first row whose draft does not stand, or of the last row. A request gets bit for
///   bit the tokens that it would get without drafts: at temperature 0 this is greedy verification, at others rejection
///   sampling with `q = 1`, since `x[i]` stands with probability `p[i][x[i]]` and what replaces it is distributed as the
///   rest of `p[i]`.
/// - [`Drawn`](DraftProbabilities::Drawn) from `q` (Leviathan et al. 2023, arXiv:2211.17192, algorithm 1; Chen et al. 2023,
///   arXiv:2302.01318, algorithm 2): `x[i]` stands if `acceptance_uniform · q[i][x[i]] < p[i][x[i]]`. The first that does
///   not is replaced by a token with weights `w = max(p[i] - q[i], 0)`: the lowest id whose running sum of `w`, in
///   ascending id, exceeds `residual_uniform` times their sum; where all weights are 0, by what `sample` takes of row `i`.
///   If all stand, the next token is what `sample` takes of the last row. Every token that comes out is distributed as `p`
///   if the drafts were drawn from `q` by whatever draws, those of `sample` with the same seed and position included. The
///   tokens are not those of a run without drafts.
///
/// Both are decided by seed and position alone. A drafted id outside the vocabulary never stands. A `q` that is NaN or
/// below 0 counts as 0.
#[derive(Clone, Debug)]
pub struct VerifyArgs<'a, B: Sampling> {
    /// The plan, as last updated.
    pub plan: &'a B::VerifyPlan,
    /// F32 `[drafts + requests, vocabulary]`: the rows of request `r` begin at `cu_drafts[r] + r`.
    pub logits: &'a Tensor<B>,
    /// I32 `[drafts]`.
    pub drafts: &'a Tensor<B>,
    /// Where the drafted tokens came from.
    pub probabilities: DraftProbabilities<'a, B>,
    /// I32 `[requests]`: how many drafted tokens stand.
    pub accepted: &'a Tensor<B>,
    /// I32 `[requests]`: the token after those, always within the vocabulary.
    pub next: &'a Tensor<B>,
}

impl<B: Sampling> VerifyArgs<'_, B> {
    /// Checks shapes and types.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument.
    pub fn check(self) -> Result<Checked<Self>> {
        let (requests, drafts) = (self.plan.requests(), self.plan.drafts());
        let vocabulary = self.plan.spec().vocabulary;
        CHECK.tensor("logits", self.logits, DType::F32, &[drafts + requests, vocabulary])?;
        CHECK.tensor("drafts", self.drafts, DType::I32, &[drafts])?;
        let q = match self.probabilities {
            DraftProbabilities::Chosen => None,
            DraftProbabilities::Drawn(q) => Some(q),
        };
        if let Some(q) = q {
            CHECK.tensor("probabilities", q, DType::F32, &[drafts, vocabulary])?;
        }
        CHECK.tensor("accepted", self.accepted, DType::I32, &[requests])?;
        CHECK.tensor("next", self.next, DType::I32, &[requests])?;
        let inputs = [("logits", Some(self.logits)), ("drafts", Some(self.drafts)), ("probabilities", q)];
        CHECK.disjoint("accepted", self.accepted, &inputs)?;
        CHECK.disjoint("next", self.next, &inputs)?;
        CHECK.disjoint("next", self.next, &[("accepted", Some(self.accepted))])?;
        Ok(Checked::new(self))
    }
}
