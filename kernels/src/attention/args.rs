//! The arguments of one layer.

use super::{Attention, AttentionPlan, CHECK, Sinks};
use crate::{Checked, cache::KvCacheInfo};
use halite_hal::{DType, Result, Tensor};

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
    /// `[tokens, query_heads, value_head_dim]`; outer dimensions may be strided.
    pub out: &'a Tensor<B>,
    /// F32 `[query_heads]`: the logits of [`Sinks::PerHead`], and only of them.
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
        CHECK.that(*self.cache.spec() == spec.kv, "cache", format!("{:?}", spec.kv), self.cache.spec())?;
        let blocks = self.plan.capacity().cache_blocks;
        CHECK.that(
            self.cache.blocks() >= blocks,
            "cache",
            format!("at least {blocks} blocks"),
            self.cache.blocks(),
        )?;
        CHECK.that(self.layer < spec.kv.layers, "layer", format!("below {}", spec.kv.layers), self.layer)?;
        CHECK.tensor("q", self.q, spec.dtype, &[tokens, spec.query_heads, spec.kv.head_dim])?;
        CHECK.tensor("out", self.out, spec.dtype, &[tokens, spec.query_heads, spec.kv.value_head_dim])?;
        match (spec.sinks, self.sinks) {
            (Sinks::None, None) => {}
            (Sinks::PerHead, Some(sinks)) => CHECK.tensor("sinks", sinks, DType::F32, &[spec.query_heads])?,
            (sinks, given) => {
                let given = given.map_or("no tensor", |_| "a tensor");
                return Err(CHECK.wrong("sinks", format!("what {sinks:?} needs"), given));
            }
        }
        let inputs = [("q", Some(self.q)), ("sinks", self.sinks)];
        CHECK.disjoint("out", self.out, &inputs)?;
        CHECK.disjoint("out", self.out, &[("log_sum_exp", self.log_sum_exp)])?;
        if let Some(log_sum_exp) = self.log_sum_exp {
            CHECK.tensor("log_sum_exp", log_sum_exp, DType::F32, &[tokens, spec.query_heads])?;
            CHECK.disjoint("log_sum_exp", log_sum_exp, &inputs)?;
        }
        Ok(Checked::new(self))
    }
}
