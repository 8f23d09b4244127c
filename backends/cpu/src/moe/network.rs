//! An expert over its rows: two products, and what is before and between them.
//!
//! What the function between the products does, it does for all experts at once. Rows of INT8 per token come quantised;
//! other formats of integers are made of one expert's rows at a time, just before their product.

use crate::{
    device::Cpu,
    grouped::{Groups, RowMemory},
    stream::CpuStream,
};
use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    activation::{ActivationArgs, ActivationOps, ActivationOut, ActivationSpec},
    linear::{ActivationFormat, Activations, LinearSpec},
    moe::{ExpertWeights, FeedForward, LayerInputs},
    quantize::{Quantize, QuantizeArgs, QuantizeOut, QuantizeSpec, ScaleSource},
};
use std::ops::Range;

/// Whether a layer's rows are quantised wherever they are, before they are its own.
pub(super) fn is_sent_as_int8(layer: &LinearSpec) -> bool {
    layer.activations == ActivationFormat::Int8PerToken && layer.outliers.is_none()
}

/// Memory for rows of floats, or of INT8 per token.
pub(super) fn row_memory(
    cpu: &Cpu,
    format: ActivationFormat,
    rows: usize,
    columns: usize,
) -> Result<RowMemory> {
    Ok(match format {
        ActivationFormat::Float(dtype) => RowMemory::Float(Tensor::new(cpu, dtype, &[rows, columns])?),
        _ => RowMemory::Quantized {
            q: Tensor::new(cpu, DType::I8, &[rows, columns])?,
            scales: Tensor::new(cpu, DType::F32, &[rows])?,
            zero_points: None,
            outliers: None,
        },
    })
}

/// Memory for the rows of a layer that are quantised when they are an expert's; none for other layers.
fn integer_memory(cpu: &Cpu, layer: &LinearSpec, rows: usize) -> Result<Option<RowMemory>> {
    let format = layer.activations;
    if !format.is_quantized() || is_sent_as_int8(layer) {
        return Ok(None);
    }
    let dims = format.scale_dims(rows, layer.in_features);
    let zero_points = format.has_zero_points().then(|| Tensor::new(cpu, DType::I32, &dims));
    let outliers = layer.outliers.map(|outliers| Tensor::new(cpu, outliers.dtype, &[rows, outliers.columns]));
    Ok(Some(RowMemory::Quantized {
        q: Tensor::new(cpu, format.dtype(), &[rows, layer.in_features])?,
        scales: Tensor::new(cpu, DType::F32, &dims)?,
        zero_points: zero_points.transpose()?,
        outliers: outliers.transpose()?,
    }))
}

/// What lies between the layers: rows that a function gives, or INT8 per token; none where the second layer's rows are made
/// of what the first one gives, its gate being in its epilogue.
fn between(network: &FeedForward) -> Option<ActivationFormat> {
    match network.function {
        _ if is_sent_as_int8(&network.down) => Some(network.down.activations),
        Some(_) => Some(ActivationFormat::Float(network.gate_up.output)),
        None => None,
    }
}

/// What is before, between and after the layers of a network.
#[derive(Debug)]
pub(super) struct NetworkMemory {
    /// What the first layer takes, where that is made of each expert's rows.
    gate_up_rows: Option<(QuantizeSpec, RowMemory)>,
    /// What the first layer gives.
    first: Tensor<Cpu>,
    /// What the function between the layers gives, or the rows of the second in INT8 per token.
    between: Option<RowMemory>,
    /// What the second layer takes, where that is made of each expert's rows.
    down_rows: Option<(QuantizeSpec, RowMemory)>,
    /// What the second layer gives.
    second: Tensor<Cpu>,
}

impl NetworkMemory {
    /// For up to `rows` rows of `dtype`.
    pub(super) fn new(cpu: &Cpu, network: &FeedForward, dtype: DType, rows: usize) -> Result<Self> {
        let FeedForward { gate_up, down, .. } = network;
        let gate_up_rows = integer_memory(cpu, gate_up, rows)?;
        let down_rows = integer_memory(cpu, down, rows)?;
        Ok(NetworkMemory {
            gate_up_rows: network.gate_up_quantize(dtype).zip(gate_up_rows),
            first: Tensor::new(cpu, gate_up.output, &[rows, gate_up.out_features])?,
            between: between(network)
                .map(|format| row_memory(cpu, format, rows, down.in_features))
                .transpose()?,
            down_rows: network.down_quantize().zip(down_rows),
            second: Tensor::new(cpu, down.output, &[rows, down.out_features])?,
        })
    }
}

/// A network over groups of rows.
pub(super) struct Run<'a> {
    pub(super) network: &'a FeedForward,
    pub(super) memory: &'a NetworkMemory,
    pub(super) weights: ExpertWeights<'a, Cpu>,
    /// `[experts + 1]`
    pub(super) offsets: &'a [i32],
}

impl Run<'_> {
    /// Both layers over the first `rows` rows.
    pub(super) fn layers(
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
        let groups = Groups { x, weights: gate_up, offsets, bias, out: &first };
        cpu.quantised_groups(stream, groups, &memory.gate_up_rows, &weights.gate_up_inputs)?;
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
            (Some(spec), RowMemory::Quantized { q, scales, .. }) => {
                let (quantize, out) = (&QuantizeSpec::INT8_PER_TOKEN, QuantizeOut::new(q, scales));
                let out = ActivationOut::Quantized { spec: quantize, out };
                cpu.activation(stream, ActivationArgs { spec: &spec, x: &first, out }.check()?)?;
            }
            (None, RowMemory::Quantized { q, scales, .. }) => {
                let quantize = QuantizeSpec::new(dtype);
                let args = QuantizeArgs::new(&quantize, &first, q, scales);
                cpu.quantize(stream, args.check()?)?;
            }
            (None, RowMemory::Float(_)) => {}
        }
        let x = &between.activations();
        let (down, bias) = (weights.down, weights.down_bias);
        let groups = Groups { x, weights: down, offsets, bias, out: &second };
        cpu.quantised_groups(stream, groups, &memory.down_rows, &weights.down_inputs)?;
        Ok(second)
    }
}

impl Cpu {
    /// Grouped products whose rows are quantised group by group where there is memory for it.
    fn quantised_groups(
        &self,
        stream: &mut CpuStream,
        groups: Groups<'_>,
        memory: &Option<(QuantizeSpec, RowMemory)>,
        inputs: &LayerInputs<'_, Cpu>,
    ) -> Result<()> {
        let (Some((spec, memory)), Activations::Float(x)) = (memory, groups.x) else {
            return self.groups(stream, groups);
        };
        for (group, rows) in groups.ranges() {
            let to = RowMemory::part(&memory.activations(), rows.clone())?;
            let to = self.quantise_group(stream, (spec, &x.narrow(0, rows.clone())?), to, inputs, group)?;
            self.group(stream, &groups, group, rows, &to)?;
        }
        Ok(())
    }

    /// Quantises one group's rows to memory for them; static scales are taken from the inputs.
    fn quantise_group(
        &self,
        stream: &mut CpuStream,
        (spec, x): (&QuantizeSpec, &Tensor<Cpu>),
        to: RowMemory,
        inputs: &LayerInputs<'_, Cpu>,
        group: usize,
    ) -> Result<RowMemory> {
        let RowMemory::Quantized { q, mut scales, mut zero_points, outliers } = to else {
            return Err(crate::unsupported("moe", "this form of rows", &to));
        };
        let own: Range<usize> = group..group + 1;
        if spec.scales == ScaleSource::Static {
            if let Some(given) = inputs.scales {
                scales = given.narrow(0, own.clone())?;
            }
            zero_points = inputs.zero_points.map(|given| given.narrow(0, own.clone())).transpose()?;
        }
        let columns = match inputs.outlier_columns {
            Some(columns) => Some(columns.narrow(0, own)?.reshape(&columns.dims()[1..])?),
            None => None,
        };
        let mut args = QuantizeArgs::new(spec, x, &q, &scales);
        args.out.zero_points = zero_points.as_ref();
        if let (Some(columns), Some(values)) = (&columns, &outliers) {
            args = args.with_outliers(columns, values);
        }
        self.quantize(stream, args.check()?)?;
        Ok(RowMemory::Quantized { q, scales, zero_points, outliers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use halite_kernels::{
        activation::{Activation, GateLayout, Glu},
        linear::WeightFormat,
    };

    #[test]
    fn formats_choose_what_is_between_the_layers() {
        let (float, per_tensor) = (ActivationFormat::Float(DType::F32), ActivationFormat::Int8PerTensor);
        let glu = |network: FeedForward| network.with_glu(Glu::Plain(Activation::Silu), GateLayout::Split);
        let down = |format| LinearSpec::w8a8(32, 64).with_activation_format(format);
        let gated = LinearSpec::float(64, 32, WeightFormat::F32).gated(Activation::Silu);
        let wide = LinearSpec::float(64, 64, WeightFormat::F32);
        let int8 = Some(ActivationFormat::Int8PerToken);
        for (format, outliers, with_gate, with_function) in [
            (float, false, None, Some(float)),
            (ActivationFormat::Int8PerToken, false, int8, int8),
            // Made of each expert's rows, just before their product.
            (ActivationFormat::Int8PerToken, true, None, Some(float)),
            (per_tensor, false, None, Some(float)),
        ] {
            let down = if outliers { down(format).with_outliers(2, DType::F32) } else { down(format) };
            assert_eq!(between(&FeedForward::new(gated.clone(), down.clone())), with_gate, "{down:?}");
            assert_eq!(
                between(&glu(FeedForward::new(wide.clone(), down.clone()))),
                with_function,
                "{down:?}"
            );
        }
    }
}
