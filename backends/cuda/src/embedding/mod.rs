//! Rows of a table by token id; pooling and L2 normalising.

mod l2_normalize;
mod pooling;
mod table;

pub use pooling::CudaPoolingPlan;

use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    embedding::{
        Embedding, EmbeddingArgs, EmbeddingSpec, L2NormalizeArgs, L2NormalizeSpec, PoolArgs, PoolingLimits,
        PoolingSpec, PoolingStep,
    },
};

use crate::{compile::Program, device::Cuda, stream::CudaStream};

/// Every program of the family.
pub(crate) fn programs() -> Vec<Program> {
    [l2_normalize::programs(), pooling::programs(), table::programs()].concat()
}

impl Embedding for Cuda {
    type PoolingPlan = CudaPoolingPlan;

    fn embedding_supports(&self, spec: &EmbeddingSpec) -> Support {
        table::supports(spec)
    }

    fn embedding(&self, stream: &mut CudaStream, args: Checked<EmbeddingArgs<'_, Self>>) -> Result<()> {
        self.embedding_supports(args.spec).require("embedding", self, args.spec)?;
        table::look_up(stream, &args)
    }

    fn pooling_supports(&self, spec: &PoolingSpec) -> Support {
        pooling::supports(spec)
    }

    fn pooling_plan(
        &self,
        spec: &PoolingSpec,
        max_sequences: usize,
        max_tokens: usize,
    ) -> Result<CudaPoolingPlan> {
        self.pooling_supports(spec).require("pool", self, spec)?;
        CudaPoolingPlan::new(self, spec, max_sequences, max_tokens)
    }

    fn pooling_update(
        &self,
        stream: &mut CudaStream,
        plan: &mut CudaPoolingPlan,
        step: &Checked<PoolingStep<'_>, PoolingLimits>,
    ) -> Result<()> {
        plan.update(stream, step)
    }

    fn pool(&self, stream: &mut CudaStream, args: Checked<PoolArgs<'_, Self>>) -> Result<()> {
        pooling::pool(stream, &args)
    }

    fn l2_normalize_supports(&self, spec: &L2NormalizeSpec) -> Support {
        l2_normalize::supports(spec)
    }

    fn l2_normalize(&self, stream: &mut CudaStream, args: Checked<L2NormalizeArgs<'_, Self>>) -> Result<()> {
        self.l2_normalize_supports(args.spec).require("l2_normalize", self, args.spec)?;
        l2_normalize::rows(stream, &args)
    }
}
