//! The arguments of the products and of the expanded form.

use super::{CHECK, LatentAttention, MlaForm, MlaPlan, MlaSpec};
use crate::{
    Checked,
    attention::{AttentionOut, AttentionPlan, AttentionState, args::check_cache, state::RowTensors},
};
use halite_hal::{Result, Tensor};

/// Queries of the absorbed form: of each head, `out = [W_UKᵀ q_n, q_r]`, the second part as it is.
#[derive(Clone, Debug)]
pub struct AbsorbArgs<'a, B: LatentAttention> {
    /// Packed for the absorbed form.
    pub weights: &'a B::MlaPacked,
    /// `[tokens, heads, nope_dim + rope_dim]`; outer dimensions may be strided.
    pub q: &'a Tensor<B>,
    /// `[tokens, heads, kv_lora_rank + rope_dim]`; outer dimensions may be strided.
    pub out: &'a Tensor<B>,
}

impl<B: LatentAttention> AbsorbArgs<'_, B> {
    /// Checks shapes, types and the form.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument.
    pub fn check(self) -> Result<Checked<Self>> {
        let spec = self.weights.as_ref();
        check_form(spec, MlaForm::Absorbed)?;
        let (tokens, dtype) = (CHECK.rows("out", self.out, 3)?, spec.attention.dtype);
        CHECK.tensor("q", self.q, dtype, &[tokens, spec.heads(), spec.query_dim()])?;
        CHECK.tensor("out", self.out, dtype, &[tokens, spec.heads(), spec.attention.kv.head_dim])?;
        CHECK.disjoint("out", self.out, &[("q", Some(self.q))])?;
        Ok(Checked::new(self))
    }
}

/// Results of the absorbed form: of each head, `out = W_UV x`.
#[derive(Clone, Debug)]
pub struct UpProjectArgs<'a, B: LatentAttention> {
    /// Packed for the absorbed form.
    pub weights: &'a B::MlaPacked,
    /// `[tokens, heads, kv_lora_rank]`, what attention gave; outer dimensions may be strided.
    pub x: &'a Tensor<B>,
    /// `[tokens, heads, value_head_dim]`; outer dimensions may be strided.
    pub out: &'a Tensor<B>,
}

impl<B: LatentAttention> UpProjectArgs<'_, B> {
    /// Checks shapes, types and the form.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument.
    pub fn check(self) -> Result<Checked<Self>> {
        let spec = self.weights.as_ref();
        check_form(spec, MlaForm::Absorbed)?;
        let (tokens, dtype) = (CHECK.rows("out", self.out, 3)?, spec.attention.dtype);
        CHECK.tensor("x", self.x, dtype, &[tokens, spec.heads(), spec.kv_lora_rank()])?;
        CHECK.tensor("out", self.out, dtype, &[tokens, spec.heads(), spec.value_head_dim])?;
        CHECK.disjoint("out", self.out, &[("x", Some(self.x))])?;
        Ok(Checked::new(self))
    }
}

/// One layer of a step in the expanded form.
#[derive(Clone, Debug)]
pub struct MlaArgs<'a, B: LatentAttention> {
    /// The plan, as last updated.
    pub plan: &'a B::MlaPlan,
    /// The latent cache, with the step's latents and rotated keys already written.
    pub cache: &'a B::KvCache,
    /// Which layer of the cache.
    pub layer: usize,
    /// Packed for the expanded form.
    pub weights: &'a B::MlaPacked,
    /// `[tokens, heads, nope_dim + rope_dim]`, the last part rotated; outer dimensions may be strided.
    pub q: &'a Tensor<B>,
    /// Where an earlier call read positions before the step's ranges: the state that it handed on, in memory of its own.
    pub state_in: Option<AttentionState<'a, B>>,
    /// The result, `[tokens, heads, value_head_dim]`, or the state for a later call.
    pub out: AttentionOut<'a, B>,
    /// F32 `[heads]`: the logits of [`Sinks::PerHead`](crate::attention::Sinks::PerHead), and only of them, where the
    /// result is normalised.
    pub sinks: Option<&'a Tensor<B>>,
    /// F32 `[tokens, heads]`, where it is wanted; a sink's term is included.
    pub log_sum_exp: Option<&'a Tensor<B>>,
}

impl<B: LatentAttention> MlaArgs<'_, B> {
    /// Checks shapes, types, cache and weights against the plan.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument.
    pub fn check(self) -> Result<Checked<Self>> {
        let (spec, tokens) = (self.plan.mla(), self.plan.tokens());
        check_cache(CHECK, self.plan, self.cache, self.layer)?;
        let packed = self.weights.as_ref();
        CHECK.that(spec.same_weights(packed), "weights", format!("packed for {spec:?}"), packed)?;
        let Self { q, state_in, out, sinks, log_sum_exp, .. } = self;
        let dims = [tokens, spec.heads(), spec.value_head_dim];
        let rows = RowTensors { q, state_in, out, sinks, log_sum_exp };
        rows.check(CHECK, &spec.attention, spec.query_dim(), dims)?;
        Ok(Checked::new(self))
    }
}

fn check_form(spec: &MlaSpec, form: MlaForm) -> Result<()> {
    CHECK.that(spec.form == form, "weights", format!("packed for the form {form:?}"), spec.form)
}
