//! Experts as one operator: one case's data, run and judged.

use super::permutation::{Loads, ids};
use crate::{
    case::{Fault, Verdict},
    judge::{judge, unsupported},
    ledger::denied,
    linear::{Fill, Weights},
    oracle::moe::{
        experts::{self as oracle, Layer, Network},
        quantised::Known,
    },
    poison::{Guarded, Layout},
    random::Rng,
};
use halite_kernels::{
    Backend, DType, Stream,
    linear::LinearSpec,
    moe::{ExpertWeights, ExpertsArgs, ExpertsSpec, FeedForward, LayerInputs, SharedWeights},
    quantize::{QuantizeSpec, ScaleSource},
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

/// One layer of some experts on the device, and what the oracle needs of it.
struct PackedLayer<B: Backend> {
    packed: Vec<B::Packed>,
    bias: Option<Guarded<B>>,
    scales: Option<Guarded<B>>,
    zero_points: Option<Guarded<B>>,
    outlier_columns: Option<Guarded<B>>,
    layers: Vec<Layer>,
}

impl<B: Backend> PackedLayer<B> {
    /// `scale` is about what a static scale is.
    fn new(
        device: &B,
        stream: &mut B::Stream,
        rng: &mut Rng,
        (spec, quantize): (&LinearSpec, Option<QuantizeSpec>),
        (count, bias): (usize, bool),
        scale: f32,
    ) -> Result<Self, Fault> {
        let (mut packed, mut layers) = (Vec::new(), Vec::new());
        let n = spec.weight_rows();
        let spreads = rng.aways(count * n);
        let (biases, values) = Guarded::<B>::input(stream, DType::F32, &spreads, &[count, n], Layout::Dense)?;
        for expert in 0..count {
            let weights = Weights::new(rng, spec, Fill::Away);
            packed.push(weights.pack(device, stream, spec)?);
            let (columns, outliers) = weights.outliers();
            layers.push(Layer {
                weights: weights.dequantised(spec.in_features),
                bias: bias.then(|| values[expert * n..][..n].to_vec()),
                outlier_columns: columns.to_vec(),
                outliers: outliers.iter().copied().map(f64::from).collect(),
                known: None,
            });
        }
        let bias = bias.then_some(biases);
        let mut new =
            PackedLayer { packed, bias, scales: None, zero_points: None, outlier_columns: None, layers };
        if let Some(quantize) = quantize {
            new.static_inputs(stream, rng, &quantize, scale)?;
        }
        Ok(new)
    }

    /// Scales and zero points far apart, so that another expert's show; and the columns that weights came with.
    fn static_inputs(
        &mut self,
        stream: &mut B::Stream,
        rng: &mut Rng,
        quantize: &QuantizeSpec,
        scale: f32,
    ) -> Result<(), Fault> {
        let count = self.layers.len();
        if quantize.scales == ScaleSource::Static {
            let scales: Vec<f32> = (0..count).map(|_| scale * (1.0 + 3.0 * rng.unit())).collect();
            let zeros = quantize.output.has_zero_points();
            let middle = if quantize.output.dtype() == DType::U8 { 128 } else { 0 };
            let zero_points: Vec<i32> =
                (0..count).map(|_| if zeros { middle + rng.below(81) as i32 - 40 } else { 0 }).collect();
            for (layer, (&scale, &zero_point)) in self.layers.iter_mut().zip(scales.iter().zip(&zero_points))
            {
                layer.known = Some(Known { scale: f64::from(scale), zero_point });
            }
            self.scales = Some(Guarded::input(stream, DType::F32, &scales, &[count], Layout::Dense)?.0);
            if zeros {
                let zero_points =
                    Guarded::integers(stream, DType::I32, &zero_points, &[count], Layout::Dense)?;
                self.zero_points = Some(zero_points);
            }
        }
        if quantize.outlier_columns > 0 {
            let columns = self.layers.iter().flat_map(|layer| &layer.outlier_columns);
            let columns: Vec<i32> = columns.map(|&column| column as i32).collect();
            let dims = [count, quantize.outlier_columns];
            let columns = Guarded::integers(stream, DType::I32, &columns, &dims, Layout::Dense)?;
            self.outlier_columns = Some(columns);
        }
        Ok(())
    }

    fn inputs(&self) -> LayerInputs<'_, B> {
        let mut inputs = LayerInputs::default();
        inputs.scales = self.scales.as_ref().map(|scales| &scales.view);
        inputs.zero_points = self.zero_points.as_ref().map(|zero_points| &zero_points.view);
        inputs.outlier_columns = self.outlier_columns.as_ref().map(|columns| &columns.view);
        inputs
    }
}

/// Experts of one network on the device, and what the oracle needs of them.
pub(crate) struct Packed<B: Backend> {
    gate_up: PackedLayer<B>,
    down: PackedLayer<B>,
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
        // Of the rows, and of what is between the layers: some values lie beyond.
        let gate_up = (&network.gate_up, network.gate_up_quantize(DType::F32));
        let down = (&network.down, network.down_quantize());
        Ok(Packed {
            gate_up: PackedLayer::new(device, stream, rng, gate_up, (count, bias), 0.004)?,
            down: PackedLayer::new(device, stream, rng, down, (count, bias), 0.02)?,
        })
    }

    pub(crate) fn weights(&self) -> ExpertWeights<'_, B> {
        let mut weights = ExpertWeights::new(&self.gate_up.packed, &self.down.packed)
            .with_gate_up_inputs(self.gate_up.inputs())
            .with_down_inputs(self.down.inputs());
        weights.gate_up_bias = self.gate_up.bias.as_ref().map(|bias| &bias.view);
        weights.down_bias = self.down.bias.as_ref().map(|bias| &bias.view);
        weights
    }

    fn networks(&self) -> Vec<Network> {
        let layers = self.gate_up.layers.iter().cloned().zip(self.down.layers.iter().cloned());
        layers.map(|(gate_up, down)| Network { gate_up, down }).collect()
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
            experts: experts.networks(),
            shared: shared.as_ref().and_then(|shared| shared.networks().into_iter().next()),
            shared_gate: case.shared_gate.then(|| gate_values.clone()),
        };
        let slots: Vec<(i32, f64)> = ids.iter().copied().zip(weight_values).collect();
        let residual = case.residual.then_some(&residuals[..]);
        let expected = oracle::layer(spec, &all, &values, &slots, residual);
        judge("out", &dims, &out.read(stream)?, &expected)?;
    }
    Ok(())
}
