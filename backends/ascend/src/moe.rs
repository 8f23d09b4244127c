//! Mixtures of experts: not begun, so there are no plans.

use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    linear::ActivationFormat,
    moe::{
        CombineArgs, DispatchArgs, ExpertWeights, ExpertsArgs, ExpertsSpec, Moe, MoePlan, RoutingArgs,
        RoutingSpec, SharedWeights,
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
pub enum AscendMoePlan {}

impl MoePlan for AscendMoePlan {
    fn spec(&self) -> &ExpertsSpec {
        match *self {}
    }

    fn max_tokens(&self) -> usize {
        match *self {}
    }
}

impl Moe for Ascend {
    type MoePlan = AscendMoePlan;

    fn routing_supports(&self, _: &RoutingSpec) -> Support {
        not_yet()
    }

    fn routing_workspace(&self, _: &RoutingSpec, _max_tokens: usize) -> u64 {
        0
    }

    fn route(&self, _: &mut AscendStream, args: Checked<RoutingArgs<'_, Self>>) -> Result<()> {
        refused("routing", args.spec)
    }

    fn permutation_supports(&self, _: ActivationFormat) -> Support {
        not_yet()
    }

    fn dispatch(&self, _: &mut AscendStream, args: Checked<DispatchArgs<'_, Self>>) -> Result<()> {
        refused("dispatch", &args.local)
    }

    fn combine(&self, _: &mut AscendStream, args: Checked<CombineArgs<'_, Self>>) -> Result<()> {
        refused("combine", &args.out.dtype())
    }

    fn moe_supports(&self, _: &ExpertsSpec) -> Support {
        not_yet()
    }

    fn moe_plan(&self, spec: &ExpertsSpec, _max_tokens: usize) -> Result<AscendMoePlan> {
        refused("moe", spec)
    }

    fn moe_workspace(
        &self,
        plan: &AscendMoePlan,
        _: ExpertWeights<'_, Self>,
        _: Option<SharedWeights<'_, Self>>,
    ) -> u64 {
        match *plan {}
    }

    fn moe(&self, _: &mut AscendStream, args: Checked<ExpertsArgs<'_, Self>>) -> Result<()> {
        match *args.plan {}
    }
}
