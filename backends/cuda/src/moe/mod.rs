//! Mixture of experts: `routing` chooses; `permutation` sorts rows by expert and adds them up again. The experts themselves
//! are not here yet and are refused by name.

mod permutation;
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
    [permutation::programs(), routing::programs()].concat()
}

/// A plan of experts; there is none yet.
#[derive(Clone, Debug)]
#[non_exhaustive]
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

    fn permutation_supports(&self, rows: ActivationFormat) -> Support {
        match rows {
            ActivationFormat::Float(dtype) if dtype.is_float() => Support::Native,
            ActivationFormat::Int8PerToken => Support::Native,
            other => Support::No(format!("{other:?}: only floats and INT8 per token")),
        }
    }

    fn dispatch(&self, stream: &mut CudaStream, args: Checked<DispatchArgs<'_, Self>>) -> Result<()> {
        permutation::dispatch(stream, &args)
    }

    fn combine(&self, stream: &mut CudaStream, args: Checked<CombineArgs<'_, Self>>) -> Result<()> {
        permutation::combine(stream, &args)
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
