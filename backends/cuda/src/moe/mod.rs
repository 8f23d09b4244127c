//! Mixture of experts: `routing` chooses; `permutation` sorts rows by expert and adds them up again; `experts` does a whole
//! layer, of which `network` is what an expert does, by `rows` before its products, and `shared` what all tokens get.

mod experts;
mod network;
mod permutation;
mod routing;
mod rows;
mod shared;

pub use experts::CudaMoePlan;

use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    activation::{ActivationOps, ActivationSpec},
    linear::{ActivationFormat, Linear},
    moe::{
        CombineArgs, DispatchArgs, ExpertWeights, ExpertsArgs, ExpertsSpec, Moe, RoutingArgs, RoutingSpec,
        SharedWeights,
    },
};

use crate::{compile::Program, device::Cuda, stream::CudaStream};

/// Every program of the family.
pub(crate) fn programs() -> Vec<Program> {
    [permutation::programs(), routing::programs(), vec![rows::program(), shared::program()]].concat()
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
        permutation::combine(stream, &args, permutation::Places::Sorted)
    }

    fn moe_supports(&self, spec: &ExpertsSpec) -> Support {
        let networks = [Some(&spec.expert), spec.shared.as_ref()].into_iter().flatten();
        let parts = networks.flat_map(|network| {
            let dtype = network.gate_up.output;
            let function = network
                .function
                .map(|function| self.activation_supports(&ActivationSpec::of(function).with_dtype(dtype)));
            let layers = [&network.gate_up, &network.down].map(|layer| self.linear_supports(layer));
            layers.into_iter().chain(function)
        });
        let mut denied = parts.filter(|support| matches!(support, Support::No(_)));
        let composed =
            "a sort, two grouped products with what is before and between them, and each token's sum";
        denied.next().unwrap_or(Support::Composed(composed))
    }

    fn moe_plan(&self, spec: &ExpertsSpec, max_tokens: usize) -> Result<CudaMoePlan> {
        spec.check()?;
        self.moe_supports(spec).require("moe", self, spec)?;
        experts::plan(self, spec, max_tokens)
    }

    fn moe_workspace(
        &self,
        plan: &CudaMoePlan,
        _: ExpertWeights<'_, Self>,
        _: Option<SharedWeights<'_, Self>>,
    ) -> u64 {
        experts::workspace(self, plan)
    }

    fn moe(&self, stream: &mut CudaStream, args: Checked<ExpertsArgs<'_, Self>>) -> Result<()> {
        experts::run(self, stream, &args)
    }
}
