//! Attention: not here yet. Whatever is asked of it is refused by name.

use crate::{
    device::Cuda,
    stream::CudaStream,
    support::{not_yet, unsupported},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    attention::{
        Attention, AttentionArgs, AttentionCapacity, AttentionLimits, AttentionMergeArgs, AttentionMergeSpec,
        AttentionPlan, AttentionSpec, AttentionStep,
    },
};

/// A plan of attention; there is none yet.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CudaAttentionPlan {}

impl AttentionPlan for CudaAttentionPlan {
    fn spec(&self) -> &AttentionSpec {
        match *self {}
    }

    fn capacity(&self) -> &AttentionCapacity {
        match *self {}
    }

    fn tokens(&self) -> usize {
        match *self {}
    }
}

impl Attention for Cuda {
    type AttentionPlan = CudaAttentionPlan;

    fn attention_supports(&self, _: &AttentionSpec) -> Support {
        not_yet("attention")
    }

    fn attention_plan(&self, spec: &AttentionSpec, _: &AttentionCapacity) -> Result<CudaAttentionPlan> {
        spec.check()?;
        Err(unsupported("attention", "it", spec))
    }

    fn attention_workspace(&self, plan: &CudaAttentionPlan) -> u64 {
        match *plan {}
    }

    fn attention_update(
        &self,
        _: &mut CudaStream,
        plan: &mut CudaAttentionPlan,
        _: &Checked<AttentionStep<'_>, AttentionLimits>,
    ) -> Result<()> {
        match *plan {}
    }

    fn attention(&self, _: &mut CudaStream, args: Checked<AttentionArgs<'_, Self>>) -> Result<()> {
        match *args.plan {}
    }

    fn attention_merge_supports(&self, _: &AttentionMergeSpec) -> Support {
        not_yet("attention_merge")
    }

    fn attention_merge(&self, _: &mut CudaStream, args: Checked<AttentionMergeArgs<'_, Self>>) -> Result<()> {
        Err(unsupported("attention_merge", "it", args.spec))
    }
}
