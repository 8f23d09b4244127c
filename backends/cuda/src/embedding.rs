//! Embeddings, pooling, L2 norms: not here yet. Whatever is asked of it is refused by name.

use crate::{
    device::Cuda,
    stream::CudaStream,
    support::{not_yet, unsupported},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    embedding::{
        Embedding, EmbeddingArgs, EmbeddingSpec, L2NormalizeArgs, L2NormalizeSpec, PoolArgs, PoolingLimits,
        PoolingPlan, PoolingSpec, PoolingStep,
    },
};

/// A plan of pooling; there is none yet.
#[derive(Clone, Debug)]
pub enum CudaPoolingPlan {}

impl PoolingPlan for CudaPoolingPlan {
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

impl Embedding for Cuda {
    type PoolingPlan = CudaPoolingPlan;

    fn embedding_supports(&self, _: &EmbeddingSpec) -> Support {
        not_yet("embedding")
    }

    fn embedding(&self, _: &mut CudaStream, args: Checked<EmbeddingArgs<'_, Self>>) -> Result<()> {
        Err(unsupported("embedding", "it", args.spec))
    }

    fn pooling_supports(&self, _: &PoolingSpec) -> Support {
        not_yet("pooling")
    }

    fn pooling_plan(&self, spec: &PoolingSpec, _: usize, _: usize) -> Result<CudaPoolingPlan> {
        Err(unsupported("pooling", "it", spec))
    }

    fn pooling_update(
        &self,
        _: &mut CudaStream,
        plan: &mut CudaPoolingPlan,
        _: &Checked<PoolingStep<'_>, PoolingLimits>,
    ) -> Result<()> {
        match *plan {}
    }

    fn pool(&self, _: &mut CudaStream, args: Checked<PoolArgs<'_, Self>>) -> Result<()> {
        match *args.plan {}
    }

    fn l2_normalize_supports(&self, _: &L2NormalizeSpec) -> Support {
        not_yet("l2_normalize")
    }

    fn l2_normalize(&self, _: &mut CudaStream, args: Checked<L2NormalizeArgs<'_, Self>>) -> Result<()> {
        Err(unsupported("l2_normalize", "it", args.spec))
    }
}
