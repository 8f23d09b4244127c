//! Mixture of experts: `routing` chooses. The permutation to experts and the experts themselves are not here yet and are
//! refused by name.

mod routing;

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
    compile::Program,
    device::Cuda,
    stream::CudaStream,
    support::{not_yet, unsupported},
};

/// Every program of the family.
pub(crate) fn programs() -> Vec<Program> {
    routing::programs()
}

/// A plan of experts; there is none yet.
#[derive(Clone, Debug)]
pub enum CudaMoePlan {}

impl MoePlan for CudaMoePlan {
    fn spec(&self) -> &ExpertsSpec {
        match *self {}
    }

    fn max_tokens(&self) -> usize {
        match *self {}
    }
}

impl Moe for Cuda {
    type MoePlan = CudaMoePlan;

    fn routing_supports(&self, spec: &RoutingSpec) -> Support {
        routing::supports(spec)
    }

    fn routing_workspace(&self, _: &RoutingSpec, _max_tokens: usize) -> u64 {
        0
    }

    fn route(&self, stream: &mut CudaStream, args: Checked<RoutingArgs<'_, Self>>) -> Result<()> {
        routing::route(self, stream, &args)
    }

    fn permutation_supports(&self, _: ActivationFormat) -> Support {
        not_yet("the permutation to experts")
    }

    fn dispatch(&self, _: &mut CudaStream, _: Checked<DispatchArgs<'_, Self>>) -> Result<()> {
        Err(unsupported("moe", "dispatch", &"none"))
    }

    fn combine(&self, _: &mut CudaStream, _: Checked<CombineArgs<'_, Self>>) -> Result<()> {
        Err(unsupported("moe", "combine", &"none"))
    }

    fn moe_supports(&self, _: &ExpertsSpec) -> Support {
        not_yet("moe")
    }

    fn moe_plan(&self, spec: &ExpertsSpec, _max_tokens: usize) -> Result<CudaMoePlan> {
        Err(unsupported("moe", "it", spec))
    }

    fn moe_workspace(
        &self,
        plan: &CudaMoePlan,
        _: ExpertWeights<'_, Self>,
        _: Option<SharedWeights<'_, Self>>,
    ) -> u64 {
        match *plan {}
    }

    fn moe(&self, _: &mut CudaStream, args: Checked<ExpertsArgs<'_, Self>>) -> Result<()> {
        match *args.plan {}
    }
}
