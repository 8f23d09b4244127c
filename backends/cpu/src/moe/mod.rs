//! Mixture of experts: `routing` chooses, `dispatch` sorts rows by expert, `combine` adds them up again; `experts` does
//! a whole layer, of which `network` is what an expert does.

mod combine;
mod dispatch;
mod experts;
mod network;
mod routing;
mod shared_gate;

pub use experts::CpuMoePlan;

use crate::{device::Cpu, stream::CpuStream};
use halite_hal::{DType, Result};
use halite_kernels::{
    Checked, Support,
    activation::{ActivationOps, ActivationSpec},
    linear::{ActivationFormat, Linear},
    moe::{
        CombineArgs, DispatchArgs, ExpertWeights, ExpertsArgs, ExpertsSpec, FeedForward, GroupScore, Moe,
        RoutingArgs, RoutingSpec, Scoring, SharedWeights,
    },
    quantize::Quantize,
};

impl Moe for Cpu {
    type MoePlan = CpuMoePlan;

    fn routing_supports(&self, spec: &RoutingSpec) -> Support {
        match (spec.scoring, spec.groups.map(|groups| groups.score)) {
            (
                Scoring::Softmax | Scoring::SoftmaxOfChosen | Scoring::Sigmoid,
                None | Some(GroupScore::Best | GroupScore::TopTwo),
            ) => Support::Native,
            other => Support::No(format!("{other:?} is not implemented")),
        }
    }

    fn routing_workspace(&self, spec: &RoutingSpec, max_tokens: usize) -> u64 {
        routing::workspace(spec, max_tokens)
    }

    fn route(&self, stream: &mut CpuStream, args: Checked<RoutingArgs<'_, Self>>) -> Result<()> {
        self.routing_supports(args.spec).require("routing", self, args.spec)?;
        routing::route(self, stream, &args)
    }

    fn permutation_supports(&self, rows: ActivationFormat) -> Support {
        match rows {
            ActivationFormat::Float(dtype) if dtype.is_float() => Support::Native,
            ActivationFormat::Int8PerToken => Support::Native,
            other => Support::No(format!("{other:?}: only floats and INT8 per token")),
        }
    }

    fn dispatch(&self, _stream: &mut CpuStream, args: Checked<DispatchArgs<'_, Self>>) -> Result<()> {
        dispatch::dispatch(self, &args)
    }

    fn combine(&self, _stream: &mut CpuStream, args: Checked<CombineArgs<'_, Self>>) -> Result<()> {
        combine::combine(self, &args)
    }

    fn moe_supports(&self, spec: &ExpertsSpec) -> Support {
        for network in [Some(&spec.expert), spec.shared.as_ref()].into_iter().flatten() {
            let support = self.network_supports(network, spec.dtype);
            if support != Support::Native {
                return support;
            }
        }
        Support::Native
    }

    fn moe_plan(&self, spec: &ExpertsSpec, max_tokens: usize) -> Result<CpuMoePlan> {
        spec.check()?;
        self.moe_supports(spec).require("moe", self, spec)?;
        experts::plan(self, spec, max_tokens)
    }

    fn moe_workspace(
        &self,
        plan: &CpuMoePlan,
        experts: ExpertWeights<'_, Self>,
        shared: Option<SharedWeights<'_, Self>>,
    ) -> u64 {
        experts::workspace(self, plan, experts, shared)
    }

    fn moe(&self, stream: &mut CpuStream, args: Checked<ExpertsArgs<'_, Self>>) -> Result<()> {
        experts::run(self, stream, &args)
    }
}

impl Cpu {
    /// Rows of `dtype` go to the experts, or INT8 per token: both are built.
    fn network_supports(&self, network: &FeedForward, dtype: DType) -> Support {
        let layers = [&network.gate_up, &network.down].map(|layer| self.linear_supports(layer));
        let quantize = [network.gate_up_quantize(dtype), network.down_quantize()];
        let quantize = quantize.into_iter().flatten().map(|spec| self.quantize_supports(&spec));
        if let Some(no) = layers.into_iter().chain(quantize).find(|support| *support != Support::Native) {
            return no;
        }
        network.function.map_or(Support::Native, |function| {
            self.activation_supports(&ActivationSpec::of(function).with_dtype(network.gate_up.output))
        })
    }
}
