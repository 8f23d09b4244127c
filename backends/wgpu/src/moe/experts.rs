//! Experts as one operator, in the memory of a plan.
//!
//! Tokens in INT8 per token are quantised once, however many experts they go to; rows are sorted by expert; `network` is
//! what an expert does with its rows. How many rows an expert has is only known on the device.

use super::{
    network::{self, NetworkMemory, Run},
    permutation, shared_gate,
};
use crate::{device::Wgpu, stream::WgpuStream};
use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    linear::{ActivationFormat, Activations},
    moe::{
        CombineArgs, DispatchArgs, ExpertsArgs, ExpertsSpec, FeedForward, MoePlan, RouterWeightOn, RowMemory,
        is_sent_as_int8,
    },
    quantize::{Quantize, QuantizeArgs, QuantizeSpec},
};

/// Memory for up to so many tokens.
#[derive(Debug)]
pub struct WgpuMoePlan {
    spec: ExpertsSpec,
    max_tokens: usize,
    /// The tokens quantised, where a first layer takes them so.
    quantised: Option<RowMemory<Wgpu>>,
    /// The tokens' rows, sorted by expert.
    rows: RowMemory<Wgpu>,
    offsets: Tensor<Wgpu>,
    places: Tensor<Wgpu>,
    expert: NetworkMemory,
    shared: Option<NetworkMemory>,
}

impl MoePlan for WgpuMoePlan {
    fn spec(&self) -> &ExpertsSpec {
        &self.spec
    }

    fn max_tokens(&self) -> usize {
        self.max_tokens
    }
}

/// Whether tokens are quantised, once, before rows are sorted: where some first layer takes them so.
fn quantised_first(spec: &ExpertsSpec) -> bool {
    let int8 = |network: &FeedForward| is_sent_as_int8(&network.gate_up);
    int8(&spec.expert) || spec.shared.as_ref().is_some_and(int8)
}

pub(super) fn plan(device: &Wgpu, spec: &ExpertsSpec, max_tokens: usize) -> Result<WgpuMoePlan> {
    spec.check_tokens(max_tokens)?;
    let (hidden, rows) = (spec.expert.hidden(), max_tokens * spec.top_k);
    let int8 = is_sent_as_int8(&spec.expert.gate_up);
    let format = if int8 { ActivationFormat::Int8PerToken } else { ActivationFormat::Float(spec.dtype) };
    Ok(WgpuMoePlan {
        quantised: quantised_first(spec)
            .then(|| RowMemory::new(device, ActivationFormat::Int8PerToken, max_tokens, hidden))
            .transpose()?,
        rows: RowMemory::new(device, format, rows, hidden)?,
        offsets: Tensor::new(device, DType::I32, &[spec.local.count + 1])?,
        places: Tensor::new(device, DType::I32, &[max_tokens, spec.top_k])?,
        expert: NetworkMemory::new(device, &spec.expert, spec.dtype, [rows, spec.local.count])?,
        shared: spec
            .shared
            .as_ref()
            .map(|network| NetworkMemory::new(device, network, spec.dtype, [max_tokens, 1]))
            .transpose()?,
        spec: spec.clone(),
        max_tokens,
    })
}

pub(super) fn workspace(device: &Wgpu, plan: &WgpuMoePlan) -> u64 {
    let (spec, rows) = (&plan.spec, plan.max_tokens.saturating_mul(plan.spec.top_k));
    let mut most = network::workspace(device, &spec.expert, rows);
    if let Some(network) = &spec.shared {
        most = most.max(network::workspace(device, network, plan.max_tokens));
        // One scale of all tokens is found in scratch memory; experts have theirs in the plan's.
        let quantize = [
            (network.gate_up_quantize(spec.dtype), network.hidden()),
            (network.down_quantize(), network.intermediate()),
        ];
        for (quantize, columns) in quantize {
            let bytes = quantize.map(|spec| device.quantize_workspace(&spec, plan.max_tokens, columns));
            most = most.max(bytes.unwrap_or(0));
        }
    }
    most
}

pub(super) fn run(device: &Wgpu, stream: &mut WgpuStream, args: &ExpertsArgs<'_, Wgpu>) -> Result<()> {
    let (plan, tokens) = (args.plan, args.x.dims()[0]);
    let spec = &plan.spec;
    if tokens == 0 {
        return Ok(());
    }
    let x = Activations::Float(args.x);
    let quantised = plan.quantised.as_ref().map(|memory| memory.first(tokens)).transpose()?;
    if let Some(RowMemory::Quantized { q, scales, .. }) = &quantised {
        let quantize = QuantizeSpec::new(spec.dtype);
        device.quantize(stream, QuantizeArgs::new(&quantize, args.x, q, scales).check()?)?;
    }
    let input = |network: &FeedForward| match &quantised {
        Some(quantised) if is_sent_as_int8(&network.gate_up) => quantised.activations(),
        _ => x.clone(),
    };

    let shared = match (&args.shared, &spec.shared, &plan.shared) {
        (Some(weights), Some(network), Some(memory)) => {
            let run = Run { network, memory, weights: weights.expert, offsets: None };
            let y = run.layers(device, stream, &input(network), tokens)?;
            if let Some(gate) = weights.gate {
                shared_gate::apply(stream, args.x, gate, &y)?;
            }
            Some(y)
        }
        _ => None,
    };

    let rows = plan.rows.first(tokens * spec.top_k)?;
    let places = plan.places.narrow(0, 0..tokens)?;
    let on_input = spec.router_weight == RouterWeightOn::Input;
    let sent = DispatchArgs {
        local: spec.local,
        x: input(&spec.expert),
        ids: args.ids,
        weights: on_input.then_some(args.weights),
        rows: rows.activations(),
        offsets: &plan.offsets,
        places: &places,
    };
    permutation::dispatch(stream, &*sent.check()?)?;
    let run = Run {
        network: &spec.expert,
        memory: &plan.expert,
        weights: args.experts,
        offsets: Some(&plan.offsets),
    };
    let y = run.layers(device, stream, &rows.activations(), tokens * spec.top_k)?;

    let mut added = [args.x; 2];
    let mut count = 0;
    for tensor in [shared.as_ref(), args.residual].into_iter().flatten() {
        added[count] = tensor;
        count += 1;
    }
    let received = CombineArgs {
        rows: Activations::Float(&y),
        places: &places,
        weights: (!on_input).then_some(args.weights),
        added: &added[..count],
        out: args.out,
    };
    permutation::combine(stream, &*received.check()?)
}
