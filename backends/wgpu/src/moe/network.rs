//! An expert over its rows: two products, and what is before and between them.
//!
//! What the function between the products does, it does for all experts at once. Rows of INT8 per token come quantised;
//! other formats of integers are made once rows are their experts', just before the product.

use super::integers;
use crate::{device::Wgpu, grouped::Groups, stream::WgpuStream, support::unsupported};
use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    activation::{ActivationArgs, ActivationOps, ActivationOut, ActivationSpec},
    linear::{ActivationFormat, Activations, LinearSpec},
    moe::{ExpertWeights, FeedForward, LayerInputs, RowMemory, is_sent_as_int8},
    quantize::{Quantize, QuantizeArgs, QuantizeOut, QuantizeSpec},
};

/// Memory for the rows of a layer that are quantised when they are an expert's; none for other layers.
fn integer_memory(
    device: &Wgpu,
    layer: &LinearSpec,
    rows: usize,
    experts: usize,
) -> Result<Option<RowMemory<Wgpu>>> {
    let own = layer.activations.is_quantized() && !is_sent_as_int8(layer);
    own.then(|| RowMemory::of_layer(device, layer, rows, experts)).transpose()
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

/// Scratch bytes of what is between the layers, for so many rows.
pub(super) fn workspace(device: &Wgpu, network: &FeedForward, rows: usize) -> u64 {
    let dtype = network.gate_up.output;
    match network.function {
        Some(function) if is_sent_as_int8(&network.down) => {
            let spec = ActivationSpec::of(function).with_dtype(dtype);
            let columns = network.intermediate();
            device.activation_quantize_workspace(&spec, &QuantizeSpec::INT8_PER_TOKEN, rows, columns)
        }
        _ => 0,
    }
}

/// What is before, between and after the layers of a network.
#[derive(Debug)]
pub(super) struct NetworkMemory {
    /// What the first layer takes, where that is made of each expert's rows.
    gate_up_rows: Option<(QuantizeSpec, RowMemory<Wgpu>)>,
    /// What the first layer gives.
    first: Tensor<Wgpu>,
    /// What the function between the layers gives, or the rows of the second in INT8 per token.
    between: Option<RowMemory<Wgpu>>,
    /// What the second layer takes, where that is made of each expert's rows.
    down_rows: Option<(QuantizeSpec, RowMemory<Wgpu>)>,
    /// What the second layer gives.
    second: Tensor<Wgpu>,
}

impl NetworkMemory {
    /// For up to `rows` rows of `dtype`, of so many experts.
    pub(super) fn new(
        device: &Wgpu,
        network: &FeedForward,
        dtype: DType,
        [rows, experts]: [usize; 2],
    ) -> Result<Self> {
        let FeedForward { gate_up, down, .. } = network;
        let gate_up_rows = integer_memory(device, gate_up, rows, experts)?;
        let down_rows = integer_memory(device, down, rows, experts)?;
        Ok(NetworkMemory {
            gate_up_rows: network.gate_up_quantize(dtype).zip(gate_up_rows),
            first: Tensor::new(device, gate_up.output, &[rows, gate_up.out_features])?,
            between: between(network)
                .map(|format| RowMemory::new(device, format, rows, down.in_features))
                .transpose()?,
            down_rows: network.down_quantize().zip(down_rows),
            second: Tensor::new(device, down.output, &[rows, down.out_features])?,
        })
    }
}

/// A network over groups of rows.
pub(super) struct Run<'a> {
    pub(super) network: &'a FeedForward,
    pub(super) memory: &'a NetworkMemory,
    pub(super) weights: ExpertWeights<'a, Wgpu>,
    /// I32 `[experts + 1]`: where each expert's rows begin; without them all rows are the first one's.
    pub(super) offsets: Option<&'a Tensor<Wgpu>>,
}

impl Run<'_> {
    /// Both layers over `rows` rows, of which those at the end may be nobody's.
    pub(super) fn layers(
        &self,
        device: &Wgpu,
        stream: &mut WgpuStream,
        x: &Activations<'_, Wgpu>,
        rows: usize,
    ) -> Result<Tensor<Wgpu>> {
        let Self { network, memory, weights, offsets } = self;
        let first = memory.first.narrow(0, 0..rows)?;
        let second = memory.second.narrow(0, 0..rows)?;
        let (gate_up, bias) = (weights.gate_up, weights.gate_up_bias);
        let groups = Groups {
            x,
            weights: gate_up,
            offsets: *offsets,
            bias,
            out: &first,
            own_scales: true,
            ascending: true,
        };
        quantised_groups(device, stream, groups, &memory.gate_up_rows, &weights.gate_up_inputs)?;
        let between = match &memory.between {
            Some(between) => between.first(rows)?,
            None => RowMemory::Float(first.clone()),
        };
        let dtype = network.gate_up.output;
        let spec = network.function.map(|function| ActivationSpec::of(function).with_dtype(dtype));
        match (spec, &between) {
            (Some(spec), RowMemory::Float(out)) => {
                let args = ActivationArgs { spec: &spec, x: &first, out: ActivationOut::Float(out) };
                device.activation(stream, args.check()?)?;
            }
            (Some(spec), RowMemory::Quantized { q, scales, .. }) => {
                let (quantize, out) = (&QuantizeSpec::INT8_PER_TOKEN, QuantizeOut::new(q, scales));
                let out = ActivationOut::Quantized { spec: quantize, out };
                device.activation(stream, ActivationArgs { spec: &spec, x: &first, out }.check()?)?;
            }
            (None, RowMemory::Quantized { q, scales, .. }) => {
                let quantize = QuantizeSpec::new(dtype);
                device.quantize(stream, QuantizeArgs::new(&quantize, &first, q, scales).check()?)?;
            }
            (None, RowMemory::Float(_)) => {}
        }
        let x = &between.activations();
        let (down, bias) = (weights.down, weights.down_bias);
        let groups = Groups {
            x,
            weights: down,
            offsets: *offsets,
            bias,
            out: &second,
            own_scales: true,
            ascending: true,
        };
        quantised_groups(device, stream, groups, &memory.down_rows, &weights.down_inputs)?;
        Ok(second)
    }
}

/// Grouped products whose rows are quantised group by group where there is memory for it.
fn quantised_groups(
    device: &Wgpu,
    stream: &mut WgpuStream,
    groups: Groups<'_>,
    memory: &Option<(QuantizeSpec, RowMemory<Wgpu>)>,
    inputs: &LayerInputs<'_, Wgpu>,
) -> Result<()> {
    let (Some((spec, memory)), Activations::Float(x)) = (memory, groups.x) else {
        return groups.queue(stream);
    };
    let to = memory.first(x.dims()[0])?;
    let to = match groups.offsets {
        Some(offsets) => integers::quantize(stream, (spec, x), to, inputs, offsets)?,
        None => quantise_all(device, stream, (spec, x), to, inputs)?,
    };
    Groups { x: &to.activations(), ..groups }.queue(stream)
}

/// Quantises rows that are all one network's; static scales are taken from the inputs.
fn quantise_all(
    device: &Wgpu,
    stream: &mut WgpuStream,
    (spec, x): (&QuantizeSpec, &Tensor<Wgpu>),
    to: RowMemory<Wgpu>,
    inputs: &LayerInputs<'_, Wgpu>,
) -> Result<RowMemory<Wgpu>> {
    let to = to.with_static(spec, inputs);
    let RowMemory::Quantized { q, scales, zero_points, outliers, .. } = &to else {
        return Err(unsupported("moe", "this form of rows", &to));
    };
    let columns = match inputs.outlier_columns {
        Some(columns) => Some(columns.reshape(&columns.dims()[1..])?),
        None => None,
    };
    let mut args = QuantizeArgs::new(spec, x, q, scales);
    args.out.zero_points = zero_points.as_ref();
    if let (Some(columns), Some(values)) = (&columns, outliers) {
        args = args.with_outliers(columns, values);
    }
    device.quantize(stream, args.check()?)?;
    Ok(to)
}
