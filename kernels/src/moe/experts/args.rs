//! One call.

use super::{CHECK, ExpertWeights, MoePlan, SharedWeights};
use crate::{Checked, moe::Moe};
use halite_hal::{DType, Result, Tensor};

/// One call.
#[derive(Clone, Debug)]
pub struct ExpertsArgs<'a, B: Moe> {
    /// The plan.
    pub plan: &'a B::MoePlan,
    /// `[tokens, hidden]`.
    pub x: &'a Tensor<B>,
    /// I32 `[tokens, top_k]`: ids of all experts, local or not.
    pub ids: &'a Tensor<B>,
    /// F32 `[tokens, top_k]`.
    pub weights: &'a Tensor<B>,
    /// The local experts.
    pub experts: ExpertWeights<'a, B>,
    /// The shared expert, where the spec has one.
    pub shared: Option<SharedWeights<'a, B>>,
    /// `[tokens, hidden]`, added in the end; apart from `out`.
    pub residual: Option<&'a Tensor<B>>,
    /// `[tokens, hidden]`.
    pub out: &'a Tensor<B>,
}

impl<B: Moe> ExpertsArgs<'_, B> {
    /// Checks weights, shapes and types against the plan.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument; more tokens than planned.
    pub fn check(self) -> Result<Checked<Self>> {
        let spec = self.plan.spec();
        let tokens = CHECK.rows("x", self.x, 2)?;
        CHECK.limit("tokens", tokens, self.plan.max_tokens())?;
        let rows = [tokens, spec.expert.hidden()];
        CHECK.tensor("x", self.x, spec.dtype, &rows)?;
        CHECK.tensor("ids", self.ids, DType::I32, &[tokens, spec.top_k])?;
        CHECK.tensor("weights", self.weights, DType::F32, &[tokens, spec.top_k])?;
        CHECK.tensor("out", self.out, spec.dtype, &rows)?;
        self.experts.check(&spec.expert, spec.local.count, "experts")?;
        let alike = self.shared.is_some() == spec.shared.is_some();
        CHECK.that(alike, "shared", "a shared expert where the spec has one", self.shared.is_some())?;
        let mut inputs = vec![("x", Some(self.x)), ("ids", Some(self.ids)), ("weights", Some(self.weights))];
        inputs.push(("residual", self.residual));
        inputs.extend(self.experts.tensors());
        if let (Some(shared), Some(network)) = (&self.shared, &spec.shared) {
            shared.expert.check(network, 1, "shared")?;
            inputs.extend(shared.expert.tensors());
            inputs.push(("shared gate", shared.gate));
            if let Some(gate) = shared.gate {
                CHECK.tensor("shared gate", gate, DType::F32, &rows[1..])?;
            }
        }
        if let Some(residual) = self.residual {
            CHECK.tensor("residual", residual, spec.dtype, &rows)?;
        }
        CHECK.disjoint("out", self.out, &inputs)?;
        Ok(Checked::new(self))
    }
}
