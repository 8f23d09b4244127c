//! Embeddings, pooling and L2 norms: not begun, so there are no plans.

use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    embedding::{
        Embedding, EmbeddingArgs, EmbeddingSpec, L2NormalizeArgs, L2NormalizeSpec, PoolArgs, PoolingLimits,
        PoolingPlan, PoolingSpec, PoolingStep,
    },
};

use crate::{
    device::Ascend,
    stream::AscendStream,
    support::{not_yet, refused},
};

/// A plan; none can be made yet.
#[derive(Debug)]
#[non_exhaustive]
pub enum AscendPoolingPlan {}

impl PoolingPlan for AscendPoolingPlan {
    fn spec(&self) -> &PoolingSpec {
        match *self {}
    }

    fn max_sequences(&self) -> usize {
        match *self {}
    }

    fn max_tokens(&self) -> usize {
        match *self {}
    }

    fn sequences(&self) -> usize {
        match *self {}
    }

    fn tokens(&self) -> usize {
        match *self {}
    }
}

impl Embedding for Ascend {
    type PoolingPlan = AscendPoolingPlan;

    fn embedding_supports(&self, _: &EmbeddingSpec) -> Support {
        not_yet()
    }

    fn embedding(&self, _: &mut AscendStream, args: Checked<EmbeddingArgs<'_, Self>>) -> Result<()> {
        refused("embedding", args.spec)
    }

    fn pooling_supports(&self, _: &PoolingSpec) -> Support {
        not_yet()
    }

    fn pooling_plan(
        &self,
        spec: &PoolingSpec,
        _max_sequences: usize,
        _max_tokens: usize,
    ) -> Result<AscendPoolingPlan> {
        refused("pool", spec)
    }

    fn pooling_update(
        &self,
        _: &mut AscendStream,
        plan: &mut AscendPoolingPlan,
        _: &Checked<PoolingStep<'_>, PoolingLimits>,
    ) -> Result<()> {
        match *plan {}
    }

    fn pool(&self, _: &mut AscendStream, args: Checked<PoolArgs<'_, Self>>) -> Result<()> {
        match *args.plan {}
    }

    fn l2_normalize_supports(&self, _: &L2NormalizeSpec) -> Support {
        not_yet()
    }

    fn l2_normalize(&self, _: &mut AscendStream, args: Checked<L2NormalizeArgs<'_, Self>>) -> Result<()> {
        refused("l2_normalize", args.spec)
    }
}
