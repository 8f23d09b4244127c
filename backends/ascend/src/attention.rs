//! Attention: not begun, so there are no plans.

use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    attention::{
        Attention, AttentionArgs, AttentionCapacity, AttentionLimits, AttentionMergeArgs, AttentionMergeSpec,
        AttentionPlan, AttentionSpec, AttentionStep,
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
pub enum AscendAttentionPlan {}

impl AttentionPlan for AscendAttentionPlan {
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

impl Attention for Ascend {
    type AttentionPlan = AscendAttentionPlan;

    fn attention_supports(&self, _: &AttentionSpec) -> Support {
        not_yet()
    }

    fn attention_plan(&self, spec: &AttentionSpec, _: &AttentionCapacity) -> Result<AscendAttentionPlan> {
        refused("attention", spec)
    }

    fn attention_workspace(&self, plan: &AscendAttentionPlan) -> u64 {
        match *plan {}
    }

    fn attention_update(
        &self,
        _: &mut AscendStream,
        plan: &mut AscendAttentionPlan,
        _: &Checked<AttentionStep<'_>, AttentionLimits>,
    ) -> Result<()> {
        match *plan {}
    }

    fn attention(&self, _: &mut AscendStream, args: Checked<AttentionArgs<'_, Self>>) -> Result<()> {
        match *args.plan {}
    }

    fn attention_merge_supports(&self, _: &AttentionMergeSpec) -> Support {
        not_yet()
    }

    fn attention_merge(
        &self,
        _: &mut AscendStream,
        args: Checked<AttentionMergeArgs<'_, Self>>,
    ) -> Result<()> {
        refused("attention_merge", args.spec)
    }
}
