//! Experts as one operator, in the memory of a plan.
//!
//! Tokens are quantised once, however many experts they go to; rows are sorted by expert; each expert's products are
//! shared by all threads; what is between the products is done for all experts at once.

use super::{combine, dispatch, shared_gate};
use crate::{
    device::Cpu,
    grouped::{Groups, RowMemory},
    stream::CpuStream,
    view::read,
};
use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    activation::{ActivationArgs, ActivationOps, ActivationOut, ActivationSpec},
    linear::{ActivationFormat, Activations, Linear},
    moe::{
        CombineArgs, DispatchArgs, ExpertWeights, ExpertsArgs, ExpertsSpec, FeedForward, MoePlan,
        RouterWeightOn, SharedWeights,
    },
    quantize::{Quantize, QuantizeArgs, QuantizeOut, QuantizeSpec},
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
}

/// What is between and after the layers of a network.
#[derive(Debug)]
struct NetworkMemory {
    /// What the first layer gives.
    first: Tensor<Cpu>,
    /// What the second layer takes, where that is something else.
    between: Option<RowMemory>,
    /// What the second layer gives.
    second: Tensor<Cpu>,
}

impl MoePlan for CpuMoePlan {
    fn spec(&self) -> &ExpertsSpec {
        &self.spec
    }

    fn max_tokens(&self) -> usize {
        self.max_tokens
    }
}

fn row_memory(cpu: &Cpu, format: ActivationFormat, rows: usize, columns: usize) -> Result<RowMemory> {
    Ok(match format {
        ActivationFormat::Float(dtype) => RowMemory::Float(Tensor::new(cpu, dtype, &[rows, columns])?),
        _ => RowMemory::Int8 {
            q: Tensor::new(cpu, DType::I8, &[rows, columns])?,
            scales: Tensor::new(cpu, DType::F32, &[rows])?,
        },
    })
}

/// Whether the second layer takes what the first one gives, its gate being in its epilogue.
fn as_it_is(network: &FeedForward) -> bool {
    let FeedForward { gate_up, function, down, .. } = network;
    function.is_none() && down.activations == ActivationFormat::Float(gate_up.output)
}

/// Whether tokens are quantised, once, before rows are sorted: where some first layer takes them so.
fn quantised_first(spec: &ExpertsSpec) -> bool {
    let int8 = |network: &FeedForward| network.gate_up.activations == ActivationFormat::Int8PerToken;
    int8(&spec.expert) || spec.shared.as_ref().is_some_and(int8)
}

impl NetworkMemory {
    fn new(cpu: &Cpu, network: &FeedForward, rows: usize) -> Result<Self> {
        let FeedForward { gate_up, down, .. } = network;
        Ok(NetworkMemory {
            first: Tensor::new(cpu, gate_up.output, &[rows, gate_up.out_features])?,
            between: (!as_it_is(network))
                .then(|| row_memory(cpu, down.activations, rows, down.in_features))
                .transpose()?,
            second: Tensor::new(cpu, down.output, &[rows, down.out_features])?,
        })
    }
}

pub(super) fn plan(cpu: &Cpu, spec: &ExpertsSpec, max_tokens: usize) -> Result<CpuMoePlan> {
    spec.check()?;
    spec.check_tokens(max_tokens)?;
    let (hidden, rows) = (spec.expert.hidden(), max_tokens * spec.top_k);
    Ok(CpuMoePlan {
        quantised: quantised_first(spec)
            .then(|| row_memory(cpu, ActivationFormat::Int8PerToken, max_tokens, hidden))
            .transpose()?,
        rows: row_memory(cpu, spec.expert.gate_up.activations, rows, hidden)?,
        offsets: Tensor::new(cpu, DType::I32, &[spec.local.count + 1])?,
        places: Tensor::new(cpu, DType::I32, &[max_tokens, spec.top_k])?,
        expert: NetworkMemory::new(cpu, &spec.expert, rows)?,
        shared: spec
            .shared
            .as_ref()
            .map(|network| NetworkMemory::new(cpu, network, max_tokens))
            .transpose()?,
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
    let of = |weights: ExpertWeights<'_, Cpu>, rows: usize| {
        let first = [weights.gate_up.first(), weights.down.first()];
        first.into_iter().flatten().map(|packed| cpu.linear_workspace(packed, rows)).max().unwrap_or(0)
    };
    // One expert may get a row of every token, and repeated ids may send it more.
    let experts = of(experts, plan.max_tokens.saturating_mul(plan.spec.top_k));
    experts.max(shared.map_or(0, |shared| of(shared.expert, plan.max_tokens)))
}

pub(super) fn run(cpu: &Cpu, stream: &mut CpuStream, args: &ExpertsArgs<'_, Cpu>) -> Result<()> {
    let (plan, tokens) = (args.plan, args.x.dims()[0]);
    let spec = &plan.spec;
    if tokens == 0 {
        return Ok(());
    }
    let x = Activations::Float(args.x);
    let quantised = plan.quantised.as_ref().map(|memory| RowMemory::part(&memory.activations(), 0..tokens));
    let quantised = quantised.transpose()?;
    if let Some(RowMemory::Int8 { q, scales }) = &quantised {
        let quantize = QuantizeSpec::new(spec.dtype);
        let args = QuantizeArgs::new(&quantize, args.x, q, scales);
        cpu.quantize(stream, args.check()?)?;
    }
    let input = |network: &FeedForward| match &quantised {
        Some(quantised) if network.gate_up.activations == ActivationFormat::Int8PerToken => {
            quantised.activations()
        }
        _ => x.clone(),
    };

    let shared = match (&args.shared, &spec.shared, &plan.shared) {
        (Some(weights), Some(network), Some(memory)) => {
            let run = Run { network, memory, weights: weights.expert, offsets: &[0, tokens as i32] };
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
        let run = Run { network: &spec.expert, memory: &plan.expert, weights: args.experts, offsets };
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

/// A network over groups of rows.
struct Run<'a> {
    network: &'a FeedForward,
    memory: &'a NetworkMemory,
    weights: ExpertWeights<'a, Cpu>,
    /// `[experts + 1]`
    offsets: &'a [i32],
}

impl Run<'_> {
    /// Both layers over the first `rows` rows.
    fn layers(
        &self,
        cpu: &Cpu,
        stream: &mut CpuStream,
        x: &Activations<'_, Cpu>,
        rows: usize,
    ) -> Result<Tensor<Cpu>> {
        let Self { network, memory, weights, offsets } = *self;
        let first = memory.first.narrow(0, 0..rows)?;
        let second = memory.second.narrow(0, 0..rows)?;
        let (gate_up, bias) = (weights.gate_up, weights.gate_up_bias);
        cpu.groups(stream, Groups { x, weights: gate_up, offsets, bias, out: &first })?;
        let between = match &memory.between {
            Some(between) => RowMemory::part(&between.activations(), 0..rows)?,
            None => RowMemory::Float(first.clone()),
        };
        let dtype = network.gate_up.output;
        let spec = network.function.map(|function| ActivationSpec::of(function).with_dtype(dtype));
        match (spec, &between) {
            (Some(spec), RowMemory::Float(out)) => {
                let args = ActivationArgs { spec: &spec, x: &first, out: ActivationOut::Float(out) };
                cpu.activation(stream, args.check()?)?;
            }
            (Some(spec), RowMemory::Int8 { q, scales }) => {
                let (quantize, out) = (&QuantizeSpec::INT8_PER_TOKEN, QuantizeOut::new(q, scales));
                let out = ActivationOut::Quantized { spec: quantize, out };
                cpu.activation(stream, ActivationArgs { spec: &spec, x: &first, out }.check()?)?;
            }
            (None, RowMemory::Int8 { q, scales }) => {
                let quantize = QuantizeSpec::new(dtype);
                let args = QuantizeArgs::new(&quantize, &first, q, scales);
                cpu.quantize(stream, args.check()?)?;
            }
            (None, RowMemory::Float(_)) => {}
            // A plan has the two forms above.
            (_, other) => return Err(crate::unsupported("moe", "this form of rows", other)),
        }
        let x = &between.activations();
        let (down, bias) = (weights.down, weights.down_bias);
        cpu.groups(stream, Groups { x, weights: down, offsets, bias, out: &second })?;
        Ok(second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use halite_kernels::{
        activation::{Activation, GateLayout, Glu},
        linear::{LinearSpec, WeightFormat},
        moe::LocalExperts,
    };

    fn float(k: usize, n: usize) -> LinearSpec {
        LinearSpec::float(k, n, WeightFormat::F32)
    }

    #[test]
    fn formats_choose_what_is_between_the_layers() {
        let int8 = LinearSpec::w8a8;
        let glu = |network: FeedForward| network.with_glu(Glu::Plain(Activation::Silu), GateLayout::Split);
        for (network, as_taken, quantised) in [
            // The gate in the first layer's epilogue, and the second takes that.
            (FeedForward::new(float(64, 32).gated(Activation::Silu), float(32, 64)), true, false),
            (FeedForward::new(int8(64, 32).gated(Activation::Silu), float(32, 64)), true, true),
            // Quantised or rounded in between, or gated by a function of its own.
            (FeedForward::new(int8(64, 32).gated(Activation::Silu), int8(32, 64)), false, true),
            (FeedForward::new(float(64, 32), float(32, 64).with_activations(DType::Bf16)), false, false),
            (glu(FeedForward::new(float(64, 64), float(32, 64))), false, false),
            (glu(FeedForward::new(int8(64, 64), int8(32, 64))), false, true),
        ] {
            assert_eq!(as_it_is(&network), as_taken, "{network:?}");
            let spec = ExpertsSpec::new(LocalExperts::all(4), 2, network.clone());
            assert_eq!(quantised_first(&spec), quantised, "{network:?}");
            // Shared experts alone want it too.
            let plain = FeedForward::new(float(64, 32).gated(Activation::Silu), float(32, 64));
            let spec = ExpertsSpec::new(LocalExperts::all(4), 2, plain).with_shared(network.clone());
            assert_eq!(quantised_first(&spec), quantised, "{network:?}, shared");
        }
    }
}
