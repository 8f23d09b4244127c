//! Not built yet.

use crate::{
    device::Wgpu,
    unbuilt::{REASON, Unbuilt, unbuilt},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support, attention::Attention, attention::AttentionArgs, attention::AttentionCapacity,
    attention::AttentionLimits, attention::AttentionMergeArgs, attention::AttentionMergeSpec,
    attention::AttentionSpec, attention::AttentionStep,
};

impl Attention for Wgpu {
    type AttentionPlan = Unbuilt;
    fn attention_supports(&self, _: &AttentionSpec) -> Support {
        Support::No(REASON.to_owned())
    }
    fn attention_plan(&self, _: &AttentionSpec, _: &AttentionCapacity) -> Result<Self::AttentionPlan> {
        Err(unbuilt("attention"))
    }
    fn attention_workspace(&self, _: &Self::AttentionPlan) -> u64 {
        0
    }
    fn attention_update(
        &self,
        _: &mut Self::Stream,
        _: &mut Self::AttentionPlan,
        _: &Checked<AttentionStep<'_>, AttentionLimits>,
    ) -> Result<()> {
        Err(unbuilt("attention"))
    }
    fn attention(&self, _: &mut Self::Stream, _: Checked<AttentionArgs<'_, Self>>) -> Result<()> {
        Err(unbuilt("attention"))
    }
    fn attention_merge_supports(&self, _: &AttentionMergeSpec) -> Support {
        Support::No(REASON.to_owned())
    }
    fn attention_merge(&self, _: &mut Self::Stream, _: Checked<AttentionMergeArgs<'_, Self>>) -> Result<()> {
        Err(unbuilt("attention"))
    }
}
