//! Experts as one operator, in the memory of a plan. How many rows an expert has is only known on the device.
//!
//! Tokens in INT8 per token are quantised once, however many experts they go to. Rows are sorted by expert, and the first
//! product gathers them as it reads them; few slots stay as they come, since no two of them would share much.

use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    linear::{ActivationFormat, Activations},
    moe::{
        CombineArgs, ExpertsArgs, ExpertsSpec, FeedForward, MoePlan, RouterWeightOn, RowMemory,
        is_sent_as_int8,
    },
    quantize::{Quantize, QuantizeArgs, QuantizeSpec},
};

use super::{
    network::{NetworkMemory, Run},
    permutation::{self, Places, Sorted},
    shared::{self, SharedMemory},
};
use crate::{device::Cuda, linear::RowGroups, stream::CudaStream};

/// Memory for up to so many tokens.
#[derive(Debug)]
pub struct CudaMoePlan {
    spec: ExpertsSpec,
    max_tokens: usize,
    /// The tokens quantised, where a first layer takes them so.
    quantised: Option<RowMemory<Cuda>>,
    offsets: Tensor<Cuda>,
    places: Tensor<Cuda>,
    slots: Tensor<Cuda>,
    expert: NetworkMemory,
    shared: Option<SharedMemory>,
}

impl MoePlan for CudaMoePlan {
    fn spec(&self) -> &ExpertsSpec {
        &self.spec
    }

    fn max_tokens(&self) -> usize {
        self.max_tokens
    }
}

/// Whether so many slots are not sorted: an expert has hardly more than one of them.
fn are_few(slots: usize, experts: usize) -> bool {
    slots <= experts
}

pub(super) fn plan(device: &Cuda, spec: &ExpertsSpec, max_tokens: usize) -> Result<CudaMoePlan> {
    spec.check_tokens(max_tokens)?;
    let (hidden, rows) = (spec.expert.hidden(), max_tokens * spec.top_k);
    let int8 = |network: &FeedForward| is_sent_as_int8(&network.gate_up);
    let quantised = int8(&spec.expert) || spec.shared.as_ref().is_some_and(int8);
    let on_input = spec.router_weight == RouterWeightOn::Input;
    let sizes = [rows, spec.local.count];
    Ok(CudaMoePlan {
        quantised: quantised
            .then(|| RowMemory::new(device, ActivationFormat::Int8PerToken, max_tokens, hidden))
            .transpose()?,
        offsets: Tensor::new(device, DType::I32, &[spec.local.count + 1])?,
        places: Tensor::new(device, DType::I32, &[max_tokens, spec.top_k])?,
        slots: Tensor::new(device, DType::I32, &[rows])?,
        expert: NetworkMemory::new(device, &spec.expert, (spec.dtype, on_input), sizes)?,
        shared: spec
            .shared
            .as_ref()
            .map(|network| SharedMemory::new(device, network, spec.dtype, max_tokens))
            .transpose()?,
        spec: spec.clone(),
        max_tokens,
    })
}

pub(super) fn workspace(device: &Cuda, plan: &CudaMoePlan) -> u64 {
    let of = |network| shared::workspace(device, network, plan.spec.dtype, plan.max_tokens);
    plan.spec.shared.as_ref().map_or(0, of)
}

pub(super) fn run(device: &Cuda, stream: &mut CudaStream, args: &ExpertsArgs<'_, Cuda>) -> Result<()> {
    let (plan, tokens) = (args.plan, args.x.dims()[0]);
    let spec = &plan.spec;
    if tokens == 0 {
        return Ok(());
    }
    let quantised = plan.quantised.as_ref().map(|memory| memory.first(tokens)).transpose()?;
    if let Some(RowMemory::Quantized { q, scales, .. }) = &quantised {
        let quantize = QuantizeSpec::new(spec.dtype);
        device.quantize(stream, QuantizeArgs::new(&quantize, args.x, q, scales).check()?)?;
    }
    let input = |network: &FeedForward| match &quantised {
        Some(quantised) if is_sent_as_int8(&network.gate_up) => quantised.activations(),
        _ => Activations::Float(args.x),
    };
    let shared = match (&args.shared, &spec.shared, &plan.shared) {
        (Some(weights), Some(network), Some(memory)) => {
            let of = (network, memory, weights);
            Some(shared::run(device, stream, of, args.x, &input(network))?)
        }
        _ => None,
    };

    let places = plan.places.narrow(0, 0..tokens)?;
    let rows = tokens * spec.top_k;
    let few = are_few(rows, spec.local.count);
    let groups = if few {
        RowGroups::BySlot { ids: args.ids, first: spec.local.first, count: spec.local.count }
    } else {
        let to = Sorted { offsets: &plan.offsets, places: &places, slots: Some(&plan.slots) };
        permutation::sort(stream, "moe", spec.local, args.ids, &to)?;
        RowGroups::Sorted { offsets: &plan.offsets, slots: Some(&plan.slots), top_k: spec.top_k }
    };
    let on_input = spec.router_weight == RouterWeightOn::Input;
    let run = Run {
        network: &spec.expert,
        memory: &plan.expert,
        weights: args.experts,
        groups,
        factors: on_input.then_some(args.weights),
    };
    let y = run.layers(stream, args.x, &input(&spec.expert), rows)?;

    let mut added = [args.x; 2];
    let mut count = 0;
    for tensor in [shared.as_ref(), args.residual].into_iter().flatten() {
        added[count] = tensor;
        count += 1;
    }
    let received = CombineArgs {
        rows: Activations::Float(&y),
        places: if few { args.ids } else { &places },
        weights: (!on_input).then_some(args.weights),
        added: &added[..count],
        out: args.out,
    };
    let order = if few { Places::BySlot(spec.local) } else { Places::Sorted };
    permutation::combine(stream, &*received.check()?, order)
}

#[cfg(all(test, feature = "interpreter"))]
#[path = "experts_tests.rs"]
mod tests;
