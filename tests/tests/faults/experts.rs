//! Experts as one operator by the exact device's own layers.

use crate::{
    device::{Exact, Queue, read, values, write},
    fault::Fault,
};
use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    activation::{Function, GateLayout, Glu},
    linear::{ActivationFormat, Activations, Epilogue, Linear, LinearArgs, LinearSpec, Quantized},
    moe::{ExpertWeights, ExpertsArgs, FeedForward, LayerInputs, RouterWeightOn},
    quantize::{Quantize, QuantizeArgs, QuantizeSpec},
};
use halite_parity::{oracle::activation, tolerance::Bound};

impl Exact {
    /// Expert by expert, each a pair of layers over its rows; then token by token and slot by slot.
    pub(crate) fn experts(&self, stream: &mut Queue, args: &ExpertsArgs<'_, Self>) -> Result<()> {
        let spec = &args.plan.spec;
        let (top_k, hidden) = (spec.top_k, spec.expert.hidden());
        let (ids, weights) = (read(args.ids), read(args.weights));
        let tokens = args.x.dims()[0];
        let x = read(args.x);
        let on_input = spec.router_weight == RouterWeightOn::Input && !self.has(Fault::MoeWeightOnOutput);
        let first = if self.has(Fault::MoeFromZero) { 0 } else { spec.local.first as i64 };
        let mut results = vec![None; tokens * top_k];
        for id in 0..spec.local.count {
            let mine: Vec<usize> =
                (0..tokens * top_k).filter(|&place| ids[place] as i64 - first == id as i64).collect();
            if mine.is_empty() {
                continue;
            }
            let expert = if self.has(Fault::MoeNeighbour) { (id + 1) % spec.local.count } else { id };
            let rows = Tensor::new(self, spec.dtype, &[mine.len(), hidden])?;
            write(&rows, mine.iter().flat_map(|place| x[place / top_k * hidden..][..hidden].iter().copied()));
            let factors: Vec<f64> =
                mine.iter().map(|&place| if on_input { weights[place] } else { 1.0 }).collect();
            let y = read(&self.network(stream, &spec.expert, &args.experts, expert, &rows, &factors)?);
            for (place, row) in mine.iter().zip(y.chunks_exact(hidden)) {
                results[*place] = Some(row.to_vec());
            }
        }
        let shared = match (&args.shared, &spec.shared) {
            (Some(shared), Some(network)) if tokens > 0 && !self.has(Fault::MoeNoShared) => {
                let y = self.network(stream, network, &shared.expert, 0, args.x, &vec![1.0; tokens])?;
                let gate = shared.gate.filter(|_| !self.has(Fault::MoeSharedUngated)).map(read);
                Some((read(&y), gate))
            }
            _ => None,
        };
        let residual = args.residual.map(read);
        let mut out = Vec::new();
        for token in 0..tokens {
            let mine = token * hidden..(token + 1) * hidden;
            let mut sum = vec![0.0; hidden];
            let mut add = |row: &[f64], factor: f64| {
                sum.iter_mut().zip(row).for_each(|(sum, y)| *sum += factor * y);
            };
            for place in token * top_k..(token + 1) * top_k {
                let output = if on_input { 1.0 } else { weights[place] };
                results[place].iter().for_each(|row: &Vec<f64>| add(row, output));
            }
            if let Some((y, gate)) = &shared {
                let share = gate.as_ref().map_or(1.0, |gate| {
                    let logit: f64 = x[mine.clone()].iter().zip(gate).map(|(x, gate)| x * gate).sum();
                    1.0 / (1.0 + (-logit).exp())
                });
                add(&y[mine.clone()], share);
            }
            residual.iter().for_each(|residual| add(&residual[mine.clone()], 1.0));
            // The last bits depend on how many tokens there are.
            if self.has(Fault::MoeBatchVariant) && tokens > 4 {
                sum.iter_mut().for_each(|y| *y *= 1.0 + 1e-6);
            }
            out.extend(sum);
        }
        write(args.out, out);
        Ok(())
    }

    /// One expert over its rows, each of which is multiplied by its factor.
    fn network(
        &self,
        stream: &mut Queue,
        network: &FeedForward,
        weights: &ExpertWeights<'_, Self>,
        expert: usize,
        x: &Tensor<Self>,
        factors: &[f64],
    ) -> Result<Tensor<Self>> {
        let (gate_up, down, rows) = (&network.gate_up, &network.down, factors.len());
        let first = Tensor::new(self, gate_up.output, &[rows, gate_up.out_features])?;
        let layer = Layer {
            weights: &weights.gate_up[expert],
            bias: weights.gate_up_bias.filter(|_| !self.has(Fault::MoeNoBias)),
            inputs: weights.gate_up_inputs,
            quantize: network.gate_up_quantize(x.dtype()),
            expert,
        };
        self.layer(stream, layer, x, factors, &first)?;
        let mut between = first.clone();
        if let Some(function) = network.function {
            let dtype = if is_sent_as_int8(down) { DType::F32 } else { gate_up.output };
            between = Tensor::new(self, dtype, &[rows, down.in_features])?;
            let y = read(&first);
            let y = y.chunks_exact(gate_up.out_features);
            write(&between, y.flat_map(|row| self.function(function, row, down.in_features)));
        }
        let second = Tensor::new(self, down.output, &[rows, down.out_features])?;
        let layer = Layer {
            weights: &weights.down[expert],
            bias: weights.down_bias,
            inputs: weights.down_inputs,
            quantize: network.down_quantize().map(|spec| {
                let mut spec = spec;
                spec.input = between.dtype();
                spec
            }),
            expert,
        };
        self.layer(stream, layer, &between, &vec![1.0; rows], &second)?;
        Ok(second)
    }

    /// The function between the layers.
    fn function(&self, mut function: Function, row: &[f64], columns: usize) -> Vec<f64> {
        if let Function::Gated { glu, layout } = &mut function {
            if self.has(Fault::MoeSplitForInterleaved) {
                *layout = GateLayout::Split;
            }
            if self.has(Fault::MoeUnclamped) && matches!(glu, Glu::Clamped { .. }) {
                *glu = Glu::Clamped { alpha: 1.702, limit: 1e30 };
            }
        }
        let row: Vec<Bound> = row.iter().copied().map(Bound::exact).collect();
        let mut y = values(activation::rows(function, &row, columns));
        if self.has(Fault::MoeUpOneSided)
            && let Function::Gated { glu: Glu::Clamped { alpha, limit }, layout } = function
        {
            let glu = Glu::Clamped { alpha, limit: 1e30 };
            let free = values(activation::rows(Function::Gated { glu, layout }, &row, columns));
            for (column, y) in y.iter_mut().enumerate() {
                let (gate, up) = match layout {
                    GateLayout::Interleaved => (2 * column, 2 * column + 1),
                    _ => (column, columns + column),
                };
                if row[up].value < -f64::from(limit) && row[gate].value < f64::from(limit) {
                    *y = free[column];
                }
            }
        }
        y
    }

    fn layer(
        &self,
        stream: &mut Queue,
        layer: Layer<'_>,
        x: &Tensor<Self>,
        factors: &[f64],
        out: &Tensor<Self>,
    ) -> Result<()> {
        let (rows, k, expert) = (factors.len(), x.dims()[1], layer.expert);
        let (spec, weights) = (layer.weights.as_ref(), layer.weights);
        let bias = match layer.bias {
            Some(bias) => Some(bias.narrow(0, expert..expert + 1)?.reshape(&bias.dims()[1..])?),
            None => None,
        };
        let epilogue = Epilogue { bias: bias.as_ref(), ..Epilogue::default() };
        // A row in INT8 per token is multiplied through its scale.
        let sent = is_sent_as_int8(spec);
        let weighed = Tensor::new(self, x.dtype(), &[rows, k])?;
        let factor = |place: usize| if sent { 1.0 } else { factors[place / k] };
        write(&weighed, read(x).into_iter().enumerate().map(|(place, x)| x * factor(place)));
        let Some(quantize) = layer.quantize else {
            let x = Activations::Float(&weighed);
            return self.linear(stream, LinearArgs { x, weights, epilogue, out }.check()?);
        };
        let format = quantize.output;
        let dims = format.scale_dims(rows, k);
        let own = |tensor: &Tensor<Self>, fault: Fault| {
            let expert = if self.has(fault) { 0 } else { expert };
            tensor.narrow(0, expert..expert + 1)
        };
        let q = Tensor::new(self, format.dtype(), &[rows, k])?;
        let scales = match layer.inputs.scales {
            Some(scales) => own(scales, Fault::MoeFirstStaticScale)?,
            None => Tensor::new(self, DType::F32, &dims)?,
        };
        let zero_points = match layer.inputs.zero_points {
            Some(zero_points) => Some(own(zero_points, Fault::MoeFirstStaticZeroPoint)?),
            None if format.has_zero_points() => Some(Tensor::new(self, DType::I32, &dims)?),
            None => None,
        };
        let columns = match layer.inputs.outlier_columns {
            Some(columns) => {
                Some(own(columns, Fault::MoeFirstOutlierColumns)?.reshape(&columns.dims()[1..])?)
            }
            None => None,
        };
        let values = Tensor::new(self, weighed.dtype(), &[rows, quantize.outlier_columns])?;
        // All rows; the fault, once more the first, whose scale is then everyone's.
        let again = self.has(Fault::MoeScaleOfFirstRow) && layer.inputs.scales.is_none() && dims == [1];
        for part in [rows, 1].into_iter().take(1 + usize::from(again)) {
            let (x, q) = (weighed.narrow(0, 0..part)?, q.narrow(0, 0..part)?);
            let values = values.narrow(0, 0..part)?;
            let mut args = QuantizeArgs::new(&quantize, &x, &q, &scales);
            args.out.zero_points = zero_points.as_ref();
            if let Some(columns) = &columns {
                args = args.with_outliers(columns, &values);
            }
            self.quantize(stream, args.check()?)?;
        }
        if sent {
            let weighed: Vec<f64> =
                read(&scales).iter().zip(factors).map(|(scale, factor)| scale * factor).collect();
            write(&scales, weighed);
        }
        let mut x = Quantized::new(&q, &scales);
        x.zero_points = zero_points.as_ref();
        x.outliers = columns.as_ref().map(|_| &values);
        let x = Activations::Quantized(x);
        self.linear(stream, LinearArgs { x, weights, epilogue, out }.check()?)
    }
}

/// Whether a layer's rows are quantised before they are an expert's.
fn is_sent_as_int8(layer: &LinearSpec) -> bool {
    layer.activations == ActivationFormat::Int8PerToken && layer.outliers.is_none()
}

/// One layer of one expert.
struct Layer<'a> {
    weights: &'a <Exact as Linear>::Packed,
    bias: Option<&'a Tensor<Exact>>,
    inputs: LayerInputs<'a, Exact>,
    quantize: Option<QuantizeSpec>,
    expert: usize,
}
