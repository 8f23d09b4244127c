//! Mixture of experts: `routing` chooses.

mod routing;

use crate::{device::Cpu, stream::CpuStream};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    moe::{GroupScore, Moe, RoutingArgs, RoutingSpec, Scoring},
};

impl Moe for Cpu {
    fn routing_supports(&self, spec: &RoutingSpec) -> Support {
        match (spec.scoring, spec.groups.map(|groups| groups.score)) {
            (
                Scoring::Softmax | Scoring::SoftmaxOfChosen | Scoring::Sigmoid,
                None | Some(GroupScore::Best | GroupScore::TopTwo),
            ) => Support::Native,
            other => Support::No(format!("{other:?} is not built")),
        }
    }

    fn routing_workspace(&self, spec: &RoutingSpec, max_tokens: usize) -> u64 {
        routing::workspace(spec, max_tokens)
    }

    fn route(&self, stream: &mut CpuStream, args: Checked<RoutingArgs<'_, Self>>) -> Result<()> {
        self.routing_supports(args.spec).require("routing", self, args.spec)?;
        routing::route(self, stream, &args)
    }
}
