//! Mixture of experts: `routing` chooses; `permutation` sorts rows by expert and adds them up again; `experts` does a whole
//! layer, of which `network` is what an expert does.

mod experts;
mod integers;
mod network;
mod permutation;
mod routing;
mod shared_gate;

pub(crate) use permutation::Gather;

pub use experts::WgpuMoePlan;

use crate::{device::Wgpu, stream::WgpuStream};
use halite_hal::{DType, Result};
use halite_kernels::{
    Checked, Support,
    activation::{ActivationOps, ActivationSpec},
    linear::{ActivationFormat, Linear},
    moe::{
        CombineArgs, DispatchArgs, ExpertWeights, ExpertsArgs, ExpertsSpec, FeedForward, Moe, RoutingArgs,
        RoutingSpec, SharedWeights, is_sent_as_int8,
    },
    quantize::{Quantize, QuantizeSpec},
};

impl Moe for Wgpu {
    type MoePlan = WgpuMoePlan;

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

    fn moe_supports(&self, spec: &ExpertsSpec) -> Support {
        let networks = [Some(&spec.expert), spec.shared.as_ref()].into_iter().flatten();
        let parts = networks.flat_map(|network| self.parts(network, spec.dtype));
        let mut denied = parts.filter(|support| matches!(support, Support::No(_)));
        let composed = "dispatch, two grouped products with what is between them, and combine";
        denied.next().unwrap_or(Support::Composed(composed))
    }

    fn moe_plan(&self, spec: &ExpertsSpec, max_tokens: usize) -> Result<WgpuMoePlan> {
        spec.check()?;
        self.moe_supports(spec).require("moe", self, spec)?;
        experts::plan(self, spec, max_tokens)
    }

    fn moe_workspace(
        &self,
        plan: &WgpuMoePlan,
        _: ExpertWeights<'_, Self>,
        _: Option<SharedWeights<'_, Self>>,
    ) -> u64 {
        experts::workspace(self, plan)
    }

    fn moe(&self, stream: &mut WgpuStream, args: Checked<ExpertsArgs<'_, Self>>) -> Result<()> {
        experts::run(self, stream, &args)
    }
}

impl Wgpu {
    /// What a network over rows of `dtype` is made of.
    fn parts(&self, network: &FeedForward, dtype: DType) -> Vec<Support> {
        let layers = [&network.gate_up, &network.down].map(|layer| self.linear_supports(layer));
        let quantize = [network.gate_up_quantize(dtype), network.down_quantize()];
        let quantize = quantize.into_iter().flatten().map(|spec| self.quantize_supports(&spec));
        let function = network.function.map(|function| {
            let spec = ActivationSpec::of(function).with_dtype(network.gate_up.output);
            match is_sent_as_int8(&network.down) {
                true => self.activation_quantize_supports(&spec, &QuantizeSpec::INT8_PER_TOKEN),
                false => self.activation_supports(&spec),
            }
        });
        layers.into_iter().chain(quantize).chain(function).collect()
    }
}
