//! The arguments of one layer.

use super::{Attention, AttentionOut, AttentionPlan, AttentionState, CHECK, state::RowTensors};
use crate::{Checked, cache::KvCacheInfo, check::Check};
use halite_hal::{Result, Tensor};

/// One layer of a step.
#[derive(Clone, Debug)]
pub struct AttentionArgs<'a, B: Attention> {
    /// The plan, as last updated.
    pub plan: &'a B::AttentionPlan,
    /// The cache, with the step's keys and values already written.
    pub cache: &'a B::KvCache,
    /// Which layer of the cache.
    pub layer: usize,
    /// `[tokens, query_heads, head_dim]`; outer dimensions may be strided.
    pub q: &'a Tensor<B>,
    /// Where an earlier call read positions before the step's ranges: the state that it handed on, in memory of its own.
    pub state_in: Option<AttentionState<'a, B>>,
    /// The result, or the state for a later call.
    pub out: AttentionOut<'a, B>,
    /// F32 `[query_heads]`: the logits of [`Sinks::PerHead`](super::Sinks::PerHead), and only of them, where the result
    /// is normalised.
    pub sinks: Option<&'a Tensor<B>>,
    /// F32 `[tokens, query_heads]`, where it is wanted: the natural logarithm of the softmax's denominator, a sink's term
    /// included.
    pub log_sum_exp: Option<&'a Tensor<B>>,
}

impl<B: Attention> AttentionArgs<'_, B> {
    /// Checks shapes, types and the cache against the plan.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument.
    pub fn check(self) -> Result<Checked<Self>> {
        let (spec, tokens) = (self.plan.spec(), self.plan.tokens());
        check_cache(CHECK, self.plan, self.cache, self.layer)?;
        let Self { q, state_in, out, sinks, log_sum_exp, .. } = self;
        let dims = [tokens, spec.query_heads, spec.kv.value_head_dim];
        let rows = RowTensors { q, state_in, out, sinks, log_sum_exp };
        rows.check(CHECK, spec, spec.kv.head_dim, dims)?;
        Ok(Checked::new(self))
    }
}

/// The cache and its layer against the plan: what both families of attention check alike.
pub(crate) fn check_cache(
    check: Check,
    plan: &impl AttentionPlan,
    cache: &impl KvCacheInfo,
    layer: usize,
) -> Result<()> {
    let (kv, blocks) = (&plan.spec().kv, plan.capacity().cache_blocks);
    check.that(cache.spec() == kv, "cache", format!("{kv:?}"), cache.spec())?;
    check.that(cache.blocks() >= blocks, "cache", format!("at least {blocks} blocks"), cache.blocks())?;
    check.that(layer < kv.layers, "layer", format!("below {}", kv.layers), layer)
}
