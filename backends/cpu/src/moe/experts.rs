//! Experts as one operator, in the memory of a plan.
//!
//! Tokens in INT8 per token are quantised once, however many experts they go to; rows are sorted by expert; `network` is
//! what an expert does with its rows.

use super::{
    combine, dispatch,
    network::{NetworkMemory, Run, is_sent_as_int8, row_memory},
    shared_gate,
};
use crate::{buffer::CpuBuffer, device::Cpu, grouped::RowMemory, stream::CpuStream, view::read};
use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    linear::{ActivationFormat, Activations, Linear},
    moe::{
        CombineArgs, DispatchArgs, ExpertWeights, ExpertsArgs, ExpertsSpec, FeedForward, MoePlan,
        RouterWeightOn, SharedWeights,
    },
    quantize::{Quantize, QuantizeArgs, QuantizeSpec},
};

/// Memory for up to so many tokens.
#[derive(Debug)]
pub struct CpuMoePlan {
    spec: ExpertsSpec,
    max_tokens: usize,
    /// The tokens quantised, where a first layer takes them so.
    quantised: Option<RowMemory>,
    /// The tokens' rows, sorted by expert.
    rows: RowMemory,
    offsets: Tensor<Cpu>,
    places: Tensor<Cpu>,
    expert: NetworkMemory,
    shared: Option<NetworkMemory>,
    /// A byte that a call holds for as long as it works in this memory: of two at once, one is refused.
    in_use: CpuBuffer,
}

impl MoePlan for CpuMoePlan {
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

pub(super) fn plan(cpu: &Cpu, spec: &ExpertsSpec, max_tokens: usize) -> Result<CpuMoePlan> {
    spec.check()?;
    spec.check_tokens(max_tokens)?;
    let (hidden, rows) = (spec.expert.hidden(), max_tokens * spec.top_k);
    let int8 = is_sent_as_int8(&spec.expert.gate_up);
    let format = if int8 { ActivationFormat::Int8PerToken } else { ActivationFormat::Float(spec.dtype) };
    Ok(CpuMoePlan {
        quantised: quantised_first(spec)
            .then(|| row_memory(cpu, ActivationFormat::Int8PerToken, max_tokens, hidden))
            .transpose()?,
        rows: row_memory(cpu, format, rows, hidden)?,
        offsets: Tensor::new(cpu, DType::I32, &[spec.local.count + 1])?,
        places: Tensor::new(cpu, DType::I32, &[max_tokens, spec.top_k])?,
        expert: NetworkMemory::new(cpu, &spec.expert, spec.dtype, rows)?,
        shared: spec
            .shared
            .as_ref()
            .map(|network| NetworkMemory::new(cpu, network, spec.dtype, max_tokens))
            .transpose()?,
        in_use: CpuBuffer::alloc(1)?,
        spec: spec.clone(),
        max_tokens,
    })
}

pub(super) fn workspace(
    cpu: &Cpu,
    plan: &CpuMoePlan,
    experts: ExpertWeights<'_, Cpu>,
    shared: Option<SharedWeights<'_, Cpu>>,
) -> u64 {
    let spec = &plan.spec;
    let of = |network: &FeedForward, weights: ExpertWeights<'_, Cpu>, rows: usize| {
        let first = [weights.gate_up.first(), weights.down.first()];
        let products = first.into_iter().flatten().map(|packed| cpu.linear_workspace(packed, rows)).max();
        let quantize = [
            (network.gate_up_quantize(spec.dtype), network.hidden()),
            (network.down_quantize(), network.intermediate()),
        ];
        let quantize = quantize
            .into_iter()
            .filter_map(|(spec, columns)| spec.map(|spec| cpu.quantize_workspace(&spec, rows, columns)));
        products.into_iter().chain(quantize).max().unwrap_or(0)
    };
    // One expert may get a row of every token, and repeated ids may send it more.
    let experts = of(&spec.expert, experts, plan.max_tokens.saturating_mul(spec.top_k));
    match (&spec.shared, shared) {
        (Some(network), Some(shared)) => experts.max(of(network, shared.expert, plan.max_tokens)),
        _ => experts,
    }
}

pub(super) fn run(cpu: &Cpu, stream: &mut CpuStream, args: &ExpertsArgs<'_, Cpu>) -> Result<()> {
    let (plan, tokens) = (args.plan, args.x.dims()[0]);
    let spec = &plan.spec;
    if tokens == 0 {
        return Ok(());
    }
    let _mine = plan.in_use.write(0..1)?;
    let x = Activations::Float(args.x);
    let quantised = plan.quantised.as_ref().map(|memory| RowMemory::part(&memory.activations(), 0..tokens));
    let quantised = quantised.transpose()?;
    if let Some(RowMemory::Quantized { q, scales, .. }) = &quantised {
        let quantize = QuantizeSpec::new(spec.dtype);
        let args = QuantizeArgs::new(&quantize, args.x, q, scales);
        cpu.quantize(stream, args.check()?)?;
    }
    let input = |network: &FeedForward| match &quantised {
        Some(quantised) if is_sent_as_int8(&network.gate_up) => quantised.activations(),
        _ => x.clone(),
    };

    let shared = match (&args.shared, &spec.shared, &plan.shared) {
        (Some(weights), Some(network), Some(memory)) => {
            let offsets = &[0, tokens as i32];
            let run = Run { network, memory, weights: weights.expert, offsets };
            let y = run.layers(cpu, stream, &input(network), tokens)?;
            if let Some(gate) = weights.gate {
                shared_gate::apply(cpu, args.x, gate, &y)?;
            }
            Some(y)
        }
        _ => None,
    };

    let rows = RowMemory::part(&plan.rows.activations(), 0..tokens * spec.top_k)?;
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
    dispatch::dispatch(cpu, &*sent.check()?)?;

    let y = {
        let offsets = read::<i32>(&plan.offsets)?;
        let offsets = offsets.data();
        let used = offsets.last().map_or(0, |&last| last as usize);
        let (network, memory) = (&spec.expert, &plan.expert);
        let run = Run { network, memory, weights: args.experts, offsets };
        let rows = RowMemory::part(&rows.activations(), 0..used)?;
        run.layers(cpu, stream, &rows.activations(), used)?
    };

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
    combine::combine(cpu, &*received.check()?)
}

#[cfg(test)]
#[path = "experts_tests.rs"]
mod tests;
