//! Not built yet.

use crate::{
    device::Wgpu,
    unbuilt::{REASON, Unbuilt, unbuilt},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support, linear::ActivationFormat, moe::CombineArgs, moe::DispatchArgs, moe::ExpertWeights,
    moe::ExpertsArgs, moe::ExpertsSpec, moe::Moe, moe::RoutingArgs, moe::RoutingSpec, moe::SharedWeights,
};

impl Moe for Wgpu {
    type MoePlan = Unbuilt;
    fn routing_supports(&self, _: &RoutingSpec) -> Support {
        Support::No(REASON.to_owned())
    }
    fn routing_workspace(&self, _: &RoutingSpec, _: usize) -> u64 {
        0
    }
    fn route(&self, _: &mut Self::Stream, _: Checked<RoutingArgs<'_, Self>>) -> Result<()> {
        Err(unbuilt("moe"))
    }
    fn permutation_supports(&self, _: ActivationFormat) -> Support {
        Support::No(REASON.to_owned())
    }
    fn dispatch(&self, _: &mut Self::Stream, _: Checked<DispatchArgs<'_, Self>>) -> Result<()> {
        Err(unbuilt("moe"))
    }
    fn combine(&self, _: &mut Self::Stream, _: Checked<CombineArgs<'_, Self>>) -> Result<()> {
        Err(unbuilt("moe"))
    }
    fn moe_supports(&self, _: &ExpertsSpec) -> Support {
        Support::No(REASON.to_owned())
    }
    fn moe_plan(&self, _: &ExpertsSpec, _: usize) -> Result<Self::MoePlan> {
        Err(unbuilt("moe"))
    }
    fn moe_workspace(
        &self,
        _: &Self::MoePlan,
        _: ExpertWeights<'_, Self>,
        _: Option<SharedWeights<'_, Self>>,
    ) -> u64 {
        0
    }
    fn moe(&self, _: &mut Self::Stream, _: Checked<ExpertsArgs<'_, Self>>) -> Result<()> {
        Err(unbuilt("moe"))
    }
}
