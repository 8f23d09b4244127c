//! Not built yet.

use crate::{
    device::Wgpu,
    unbuilt::{REASON, Unbuilt, unbuilt},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support, embedding::Embedding, embedding::EmbeddingArgs, embedding::EmbeddingSpec,
    embedding::L2NormalizeArgs, embedding::L2NormalizeSpec, embedding::PoolArgs, embedding::PoolingLimits,
    embedding::PoolingSpec, embedding::PoolingStep,
};

impl Embedding for Wgpu {
    type PoolingPlan = Unbuilt;
    fn embedding_supports(&self, _: &EmbeddingSpec) -> Support {
        Support::No(REASON.to_owned())
    }
    fn embedding(&self, _: &mut Self::Stream, _: Checked<EmbeddingArgs<'_, Self>>) -> Result<()> {
        Err(unbuilt("embedding"))
    }
    fn pooling_supports(&self, _: &PoolingSpec) -> Support {
        Support::No(REASON.to_owned())
    }
    fn pooling_plan(&self, _: &PoolingSpec, _: usize, _: usize) -> Result<Self::PoolingPlan> {
        Err(unbuilt("embedding"))
    }
    fn pooling_update(
        &self,
        _: &mut Self::Stream,
        _: &mut Self::PoolingPlan,
        _: &Checked<PoolingStep<'_>, PoolingLimits>,
    ) -> Result<()> {
        Err(unbuilt("embedding"))
    }
    fn pool(&self, _: &mut Self::Stream, _: Checked<PoolArgs<'_, Self>>) -> Result<()> {
        Err(unbuilt("embedding"))
    }
    fn l2_normalize_supports(&self, _: &L2NormalizeSpec) -> Support {
        Support::No(REASON.to_owned())
    }
    fn l2_normalize(&self, _: &mut Self::Stream, _: Checked<L2NormalizeArgs<'_, Self>>) -> Result<()> {
        Err(unbuilt("embedding"))
    }
}
