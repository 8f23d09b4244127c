//! An expert over its rows: two products, and what is before and between them. All experts are served at once, and what is
//! between the products is one launch: the function, and the next product's format of rows.

use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    linear::{ActivationFormat, Activations, LinearSpec},
    moe::{ExpertWeights, FeedForward, LayerInputs, RowMemory, is_sent_as_int8},
    quantize::QuantizeSpec,
};

use super::rows::RowSource;
use crate::{
    device::Cuda,
    linear::{Groups, RowGroups},
    stream::CudaStream,
};

/// Rows that are made for a product.
#[derive(Debug)]
struct Made {
    /// None of floats.
    quantize: Option<QuantizeSpec>,
    rows: RowMemory<Cuda>,
    /// Whether they are rounded to their source's type before they are quantised.
    rounded: bool,
}

impl Made {
    /// For so many rows of a layer, of so many experts.
    fn new(
        device: &Cuda,
        layer: &LinearSpec,
        quantize: Option<QuantizeSpec>,
        [rows, experts]: [usize; 2],
    ) -> Result<Self> {
        let sent = is_sent_as_int8(layer);
        let memory = if quantize.is_none() || sent {
            RowMemory::new(device, layer.activations, rows, layer.in_features)?
        } else {
            RowMemory::of_layer(device, layer, rows, experts)?
        };
        Ok(Made { quantize, rows: memory, rounded: !sent })
    }

    /// Makes the first `rows` of them.
    fn make(
        &self,
        stream: &mut CudaStream,
        from: RowSource<'_>,
        inputs: &LayerInputs<'_, Cuda>,
        rows: usize,
    ) -> Result<RowMemory<Cuda>> {
        let from = RowSource { rounded: self.rounded, ..from };
        let to = self.rows.first(rows)?;
        match (&self.quantize, &to) {
            (Some(spec), _) => from.integers(stream, spec, to, inputs),
            (None, RowMemory::Float(out)) => from.floats(stream, out).map(|()| to),
            // Rows without a specification were allocated as floats.
            (None, RowMemory::Quantized { .. }) => Ok(to),
        }
    }
}

/// What is before, between and after the layers of a network.
#[derive(Debug)]
pub(super) struct NetworkMemory {
    /// What the first layer takes, where that is not the tokens.
    before: Option<Made>,
    /// What the first layer gives.
    first: Tensor<Cuda>,
    /// What the second layer takes, where that is not what the first gives.
    between: Option<Made>,
    /// What the second layer gives.
    second: Tensor<Cuda>,
}

impl NetworkMemory {
    /// For up to so many rows of `dtype`, of so many experts; the router's weights multiply the rows if they are `on_input`.
    pub(super) fn new(
        device: &Cuda,
        network: &FeedForward,
        (dtype, on_input): (DType, bool),
        sizes: [usize; 2],
    ) -> Result<Self> {
        let FeedForward { gate_up, down, function, .. } = network;
        let before = match gate_up.activations {
            // A token's scale is multiplied instead.
            _ if is_sent_as_int8(gate_up) => false,
            ActivationFormat::Float(_) => on_input,
            _ => true,
        };
        let between = down.activations.is_quantized() || function.is_some();
        let made = |is_made: bool, layer, quantize| {
            is_made.then(|| Made::new(device, layer, quantize, sizes)).transpose()
        };
        Ok(NetworkMemory {
            before: made(before, gate_up, network.gate_up_quantize(dtype))?,
            first: Tensor::new(device, gate_up.output, &[sizes[0], gate_up.out_features])?,
            between: made(between, down, network.down_quantize())?,
            second: Tensor::new(device, down.output, &[sizes[0], down.out_features])?,
        })
    }
}

/// Experts over their rows.
pub(super) struct Run<'a> {
    pub(super) network: &'a FeedForward,
    pub(super) memory: &'a NetworkMemory,
    pub(super) weights: ExpertWeights<'a, Cuda>,
    pub(super) groups: RowGroups<'a>,
    /// F32 `[tokens, top_k]`: the router's weights where they multiply the rows.
    pub(super) factors: Option<&'a Tensor<Cuda>>,
}

impl Run<'_> {
    /// Both layers over `rows` rows, of which some may be nobody's. `tokens` is `x` as the first layer takes it, in INT8 per
    /// token if it does.
    pub(super) fn layers(
        &self,
        stream: &mut CudaStream,
        x: &Tensor<Cuda>,
        tokens: &Activations<'_, Cuda>,
        rows: usize,
    ) -> Result<Tensor<Cuda>> {
        let Run { network, memory, weights, groups, factors } = self;
        let first = memory.first.narrow(0, 0..rows)?;
        let second = memory.second.narrow(0, 0..rows)?;
        let from = RowSource {
            x,
            groups: *groups,
            gathered: true,
            factors: *factors,
            function: None,
            rounded: true,
        };
        let product = Groups {
            operator: "moe",
            x: tokens,
            weights: weights.gate_up,
            rows: *groups,
            bias: weights.gate_up_bias,
            out: &first,
            gathered: true,
            factors: *factors,
            own_scales: true,
        };
        match &memory.before {
            Some(before) => {
                let made = before.make(stream, from, &weights.gate_up_inputs, rows)?;
                let x = &made.activations();
                Groups { x, gathered: false, factors: None, ..product }.queue(stream)?;
            }
            None => product.queue(stream)?,
        }
        let between = match &memory.between {
            Some(between) => {
                let function = network.function;
                let from = RowSource { x: &first, gathered: false, factors: None, function, ..from };
                between.make(stream, from, &weights.down_inputs, rows)?
            }
            None => RowMemory::Float(first.clone()),
        };
        let down = Groups {
            operator: "moe",
            x: &between.activations(),
            weights: weights.down,
            rows: *groups,
            bias: weights.down_bias,
            out: &second,
            gathered: false,
            factors: None,
            own_scales: true,
        };
        down.queue(stream)?;
        Ok(second)
    }
}
