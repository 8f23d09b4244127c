//! Mixture of experts: `routing` chooses, `permutation` sorts rows by expert and adds them up again.

mod permutation;
mod routing;

pub(crate) use permutation::Gather;

use crate::{
    device::Wgpu,
    stream::WgpuStream,
    unbuilt::{REASON, Unbuilt, unbuilt},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    linear::ActivationFormat,
    moe::{
        CombineArgs, DispatchArgs, ExpertWeights, ExpertsArgs, ExpertsSpec, Moe, RoutingArgs, RoutingSpec,
        SharedWeights,
    },
};

impl Moe for Wgpu {
    type MoePlan = Unbuilt;

    fn routing_supports(&self, spec: &RoutingSpec) -> Support {
        routing::supports(spec)
    }

    fn routing_workspace(&self, _: &RoutingSpec, _: usize) -> u64 {
        0
    }

    fn route(&self, stream: &mut WgpuStream, args: Checked<RoutingArgs<'_, Self>>) -> Result<()> {
        routing::route(self, stream, &args)
    }

    fn permutation_supports(&self, rows: ActivationFormat) -> Support {
        match rows {
            ActivationFormat::Float(dtype) if dtype.is_float() => Support::Native,
            ActivationFormat::Int8PerToken => Support::Native,
            other => Support::No(format!("{other:?}: only floats and INT8 per token")),
        }
    }

    fn dispatch(&self, stream: &mut WgpuStream, args: Checked<DispatchArgs<'_, Self>>) -> Result<()> {
        permutation::dispatch(stream, &args)
    }

    fn combine(&self, stream: &mut WgpuStream, args: Checked<CombineArgs<'_, Self>>) -> Result<()> {
        permutation::combine(stream, &args)
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

    fn moe(&self, _: &mut WgpuStream, _: Checked<ExpertsArgs<'_, Self>>) -> Result<()> {
        Err(unbuilt("moe"))
    }
}
