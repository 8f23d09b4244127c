//! Experts as one operator: one case's data, run and judged.

use super::permutation::{Loads, ids};
use crate::{
    case::{Fault, Verdict},
    judge::{judge, unsupported},
    ledger::denied,
    linear::{Fill, Weights},
    oracle::moe::experts::{self as oracle, Layer, Network},
    poison::{Guarded, Layout},
    random::Rng,
    tolerance::Bound,
};
use halite_kernels::{
    Backend, DType, Stream,
    linear::LinearSpec,
    moe::{ExpertWeights, ExpertsArgs, ExpertsSpec, FeedForward, SharedWeights},
};

/// One call.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) spec: ExpertsSpec,
    /// In all, local or not.
    pub(crate) experts: usize,
    pub(crate) tokens: usize,
    pub(crate) loads: Loads,
    pub(crate) bias: bool,
    pub(crate) shared_gate: bool,
    pub(crate) residual: bool,
    pub(crate) fill: Fill,
    pub(crate) layout: Layout,
    pub(crate) seed: u64,
}

impl Case {
    pub(crate) fn new(spec: ExpertsSpec, experts: usize, tokens: usize) -> Self {
        Case {
            spec,
            experts,
            tokens,
            loads: Loads::Spread,
            bias: false,
            shared_gate: false,
            residual: false,
            fill: Fill::Away,
            layout: Layout::Dense,
            seed: tokens as u64,
        }
    }
}

/// Experts of one network on the device, and what the oracle needs of them.
pub(crate) struct Packed<B: Backend> {
    gate_up: Vec<B::Packed>,
    down: Vec<B::Packed>,
    gate_up_bias: Option<Guarded<B>>,
    down_bias: Option<Guarded<B>>,
    networks: Vec<Network>,
}

impl<B: Backend> Packed<B> {
    pub(crate) fn new(
        device: &B,
        stream: &mut B::Stream,
        rng: &mut Rng,
        network: &FeedForward,
        count: usize,
        bias: bool,
    ) -> Result<Self, Fault> {
        let mut layer = |spec: &LinearSpec| -> Result<_, Fault> {
            let (mut packed, mut layers) = (Vec::new(), Vec::new());
            let n = spec.weight_rows();
            let spreads = rng.aways(count * n);
            let (biases, values) =
                Guarded::<B>::input(stream, DType::F32, &spreads, &[count, n], Layout::Dense)?;
            for expert in 0..count {
                let weights = Weights::new(rng, spec, Fill::Away);
                packed.push(weights.pack(device, stream, spec)?);
                let bias = bias.then(|| values[expert * n..][..n].to_vec());
                layers.push(Layer { weights: weights.dequantised(spec.in_features), bias });
            }
            Ok((packed, layers, bias.then_some(biases)))
        };
        let (gate_up, first, gate_up_bias) = layer(&network.gate_up)?;
        let (down, second, down_bias) = layer(&network.down)?;
        let networks = first.into_iter().zip(second).map(|(gate_up, down)| Network { gate_up, down });
        Ok(Packed { gate_up, down, gate_up_bias, down_bias, networks: networks.collect() })
    }

    pub(crate) fn weights(&self) -> ExpertWeights<'_, B> {
        let mut weights = ExpertWeights::new(&self.gate_up, &self.down);
        weights.gate_up_bias = self.gate_up_bias.as_ref().map(|bias| &bias.view);
        weights.down_bias = self.down_bias.as_ref().map(|bias| &bias.view);
        weights
    }
}

pub(super) fn body<B: Backend>(device: &B, case: &Case) -> Verdict {
    let Case { spec, tokens, layout, .. } = case;
    let (tokens, top_k, hidden) = (*tokens, spec.top_k, spec.expert.hidden());
    let stream = &mut device.stream()?;
    let mut rng = Rng::new(case.seed);
    // Room for more tokens: what an earlier step left there must not be used.
    let planned = device.moe_plan(spec, tokens + 3);
    if denied(device.moe_supports(spec)) {
        return unsupported("moe", planned);
    }
    let plan = planned?;
    let experts = Packed::new(device, stream, &mut rng, &spec.expert, spec.local.count, case.bias)?;
    let shared = match &spec.shared {
        Some(network) => Some(Packed::new(device, stream, &mut rng, network, 1, case.bias)?),
        None => None,
    };
    let (gate, gate_values) =
        Guarded::<B>::input(stream, DType::F32, &rng.aways(hidden), &[hidden], Layout::Dense)?;
    for round in [tokens + 3, tokens] {
        let x = match case.fill {
            Fill::Spread => rng.spreads(round * hidden),
            _ => rng.aways(round * hidden),
        };
        let dims = [round, hidden];
        let (x, values) = Guarded::<B>::input(stream, spec.dtype, &x, &dims, *layout)?;
        let ids = ids(&mut rng, case.loads, case.experts, spec.local, round, top_k);
        let id_tensor = Guarded::<B>::integers(stream, DType::I32, &ids, &[round, top_k], *layout)?;
        let weights = rng.aways(round * top_k);
        let (weights, weight_values) =
            Guarded::<B>::input(stream, DType::F32, &weights, &[round, top_k], *layout)?;
        let residual = rng.spreads(round * hidden);
        let (residual, residuals) = Guarded::<B>::input(stream, spec.dtype, &residual, &dims, *layout)?;
        let out = Guarded::<B>::output(stream, spec.dtype, &dims, *layout)?;
        let shared_weights = shared.as_ref().map(|shared| {
            let weights = SharedWeights::new(shared.weights());
            if case.shared_gate { weights.with_gate(&gate.view) } else { weights }
        });
        stream.reserve(device.moe_workspace(&plan, experts.weights(), shared_weights))?;
        let args = ExpertsArgs::<B> {
            plan: &plan,
            x: &x.view,
            ids: &id_tensor.view,
            weights: &weights.view,
            experts: experts.weights(),
            shared: shared_weights,
            residual: case.residual.then_some(&residual.view),
            out: &out.view,
        };
        device.moe(stream, args.check()?)?;
        if round != tokens {
            continue;
        }
        let all = oracle::Weights {
            experts: experts.networks.clone(),
            shared: shared.as_ref().and_then(|shared| shared.networks.first().cloned()),
            shared_gate: case.shared_gate.then(|| gate_values.clone()),
        };
        let mut expected: Vec<Bound> = Vec::new();
        for token in 0..tokens {
            let slots: Vec<(i32, f64)> = (token * top_k..(token + 1) * top_k)
                .map(|place| (ids[place], weight_values[place]))
                .collect();
            let part = token * hidden..(token + 1) * hidden;
            let residual = case.residual.then(|| &residuals[part.clone()]);
            expected.extend(oracle::token(spec, &all, &values[part.clone()], &slots, residual));
        }
        judge("out", &dims, &out.read(stream)?, &expected)?;
    }
    Ok(())
}
