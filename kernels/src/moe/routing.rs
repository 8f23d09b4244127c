//! Routing: which experts a token goes to, and how much each of them counts.
//!
//! For a row of logits `l`, with `s` its scores and `b` the correction bias (zeros where there is none):
//!
//! | [`Scoring`] | score `s[e]` | weight of a chosen expert | seen in |
//! |---|---|---|---|
//! | `Softmax` | `softmax(l)[e]` | its score | Mixtral, Qwen-MoE, DeepSeek-V2 |
//! | `SoftmaxOfChosen` | `l[e]` | softmax over the chosen logits | gpt-oss |
//! | `Sigmoid` | `1 / (1 + exp(-l[e]))` | its score | DeepSeek-V3; Llama 4 with one expert a token |
//!
//! Experts rank by `s + b` (DeepSeek-V3, arXiv:2412.19437, equation 16); without a bias by `l`, which is the same order
//! and rounds nothing. The bias decides who is chosen and never enters a weight. With [`ExpertGroups`] only experts of
//! the best groups take part; experts `0..experts / groups` are the first group.
//!
//! Then, in this order: weights that are to be renormalised are divided by their sum, taken in ascending slot, plus
//! 1e-20, so that weights of nothing but zeros stay zeros; and all are multiplied by `scale`.
//!
//! Ids of a row are distinct and within the experts whatever the logits, best first. Ties go to the lower id, of groups
//! too. NaN ranks below -inf and stays visible: it makes the weights NaN that are computed from it, of this row only.

use super::Moe;
use crate::{Checked, check::Check};
use halite_hal::{DType, Result, Tensor};

const CHECK: Check = Check("routing");

/// What a logit becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scoring {
    /// Softmax over all experts, then the choice.
    Softmax,
    /// The choice, then softmax over the chosen.
    SoftmaxOfChosen,
    /// The logistic function of each logit.
    Sigmoid,
}

/// What groups of experts rank by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GroupScore {
    /// The rank of the group's best expert (DeepSeek-V2, arXiv:2405.04434).
    Best,
    /// The sum of `s + b` of the group's two best experts, or of the only one (DeepSeek-V3). A sum that is NaN ranks
    /// below -inf.
    TopTwo,
}

/// Groups of experts, of which the best take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ExpertGroups {
    /// Groups of equal size: `n_group`.
    pub groups: usize,
    /// Groups that take part: `topk_group`.
    pub kept: usize,
    /// What groups rank by.
    pub score: GroupScore,
}

/// Whether weights are left as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RouterWeights {
    /// As the scoring gave them.
    AsScored,
    /// Divided by their sum.
    Renormalized,
}

/// How experts are chosen.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RoutingSpec {
    /// Columns of the logits.
    pub experts: usize,
    /// Experts a token.
    pub top_k: usize,
    /// What a logit becomes.
    pub scoring: Scoring,
    /// Groups of experts, where not all take part.
    pub groups: Option<ExpertGroups>,
    /// Whether weights are divided by their sum.
    pub weights: RouterWeights,
    /// What all weights are multiplied by in the end.
    pub scale: f32,
}

impl RoutingSpec {
    /// The best `top_k` of `experts`.
    pub fn new(experts: usize, top_k: usize, scoring: Scoring) -> Self {
        RoutingSpec { experts, top_k, scoring, groups: None, weights: RouterWeights::AsScored, scale: 1.0 }
    }

    /// Only experts of the `kept` best of `groups` groups.
    pub fn with_groups(mut self, groups: usize, kept: usize, score: GroupScore) -> Self {
        self.groups = Some(ExpertGroups { groups, kept, score });
        self
    }

    /// Weights divided by their sum.
    pub fn renormalized(mut self) -> Self {
        self.weights = RouterWeights::Renormalized;
        self
    }

    /// Weights multiplied by `scale` in the end.
    pub fn with_scale(mut self, scale: f32) -> Self {
        self.scale = scale;
        self
    }

    /// Experts of a group; all of them where there are no groups.
    pub fn group_size(&self) -> usize {
        self.groups.map_or(self.experts, |groups| self.experts / groups.groups.max(1))
    }

    /// Checks that the specification makes sense.
    ///
    /// # Errors
    /// More experts a token than there are, groups that do not divide the experts or hold too few of them, ids beyond
    /// I32, or a scale that is not finite.
    pub fn check(&self) -> Result<()> {
        CHECK.positive("experts", self.experts)?;
        CHECK.limit("experts", self.experts, i32::MAX as usize)?;
        CHECK.positive("top_k", self.top_k)?;
        CHECK.limit("top_k", self.top_k, self.experts)?;
        CHECK.that(self.scale.is_finite(), "scale", "a finite number", self.scale)?;
        let Some(ExpertGroups { groups, kept, .. }) = self.groups else { return Ok(()) };
        CHECK.positive("groups", groups)?;
        let divides = self.experts.is_multiple_of(groups);
        CHECK.that(divides, "groups", format!("a divisor of {} experts", self.experts), groups)?;
        CHECK.positive("kept", kept)?;
        CHECK.limit("kept", kept, groups)?;
        CHECK.limit("top_k", self.top_k, kept * self.group_size())
    }
}

/// One call.
#[derive(Clone, Debug)]
pub struct RoutingArgs<'a, B: Moe> {
    /// How experts are chosen.
    pub spec: &'a RoutingSpec,
    /// F32 `[tokens, experts]`.
    pub logits: &'a Tensor<B>,
    /// F32 `[experts]`: added to the scores for the choice only.
    pub correction_bias: Option<&'a Tensor<B>>,
    /// I32 `[tokens, top_k]`, best first.
    pub ids: &'a Tensor<B>,
    /// F32 `[tokens, top_k]`.
    pub weights: &'a Tensor<B>,
}

impl<B: Moe> RoutingArgs<'_, B> {
    /// Checks the spec, shapes and types.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument, or the spec's error.
    pub fn check(self) -> Result<Checked<Self>> {
        self.spec.check()?;
        let tokens = CHECK.rows("logits", self.logits, 2)?;
        let (experts, top_k) = (self.spec.experts, self.spec.top_k);
        CHECK.tensor("logits", self.logits, DType::F32, &[tokens, experts])?;
        if let Some(bias) = self.correction_bias {
            CHECK.tensor("correction_bias", bias, DType::F32, &[experts])?;
        }
        CHECK.tensor("ids", self.ids, DType::I32, &[tokens, top_k])?;
        CHECK.tensor("weights", self.weights, DType::F32, &[tokens, top_k])?;
        let inputs = [("logits", Some(self.logits)), ("correction_bias", self.correction_bias)];
        CHECK.disjoint("ids", self.ids, &inputs)?;
        CHECK.disjoint("ids", self.ids, &[("weights", Some(self.weights))])?;
        CHECK.disjoint("weights", self.weights, &inputs)?;
        Ok(Checked::new(self))
    }
}
