//! The expert that every token goes to: two linear layers over all tokens, and a sigmoid that decides how much of it a token
//! gets.

use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    activation::{ActivationArgs, ActivationOps, ActivationOut, ActivationSpec},
    linear::{ActivationFormat, Activations, Epilogue, Linear, LinearArgs, LinearSpec},
    moe::{FeedForward, LayerInputs, RowMemory, SharedWeights, is_sent_as_int8},
    quantize::{Quantize, QuantizeArgs, QuantizeOut, QuantizeSpec},
};

use crate::{
    compile::{Program, Source},
    device::Cuda,
    element::code,
    launch::Launch,
    linear::CudaPacked,
    rows::Rows,
    stream::CudaStream,
    support::unsupported,
};

static SOURCE: Source = Source::new("moe/shared_gate.cu", include_str!("shared_gate.cu"));

fn gate() -> Launch {
    Launch::new("moe", &SOURCE, "shared_gate")
}

/// The program of the gate.
pub(super) fn program() -> Program {
    gate().program()
}

/// Memory for the tokens between the layers.
#[derive(Debug)]
pub(super) struct SharedMemory {
    /// What the first layer takes, where that is neither floats nor INT8 per token.
    first_rows: Option<(QuantizeSpec, RowMemory<Cuda>)>,
    first: Tensor<Cuda>,
    /// What the function gives, or INT8 per token; none where that is what the first layer gives.
    between: Option<RowMemory<Cuda>>,
    /// As of the first layer.
    second_rows: Option<(QuantizeSpec, RowMemory<Cuda>)>,
    second: Tensor<Cuda>,
}

impl SharedMemory {
    /// For so many tokens of `dtype`.
    pub(super) fn new(device: &Cuda, network: &FeedForward, dtype: DType, tokens: usize) -> Result<Self> {
        let FeedForward { gate_up, down, .. } = network;
        let rows = |layer: &LinearSpec, quantize: Option<QuantizeSpec>| {
            let own = quantize.filter(|_| !is_sent_as_int8(layer));
            let memory = |spec| RowMemory::of_layer(device, layer, tokens, 1).map(|rows| (spec, rows));
            own.map(memory).transpose()
        };
        let between = match network.function {
            _ if is_sent_as_int8(down) => Some(down.activations),
            Some(_) => Some(ActivationFormat::Float(gate_up.output)),
            None => None,
        };
        Ok(SharedMemory {
            first_rows: rows(gate_up, network.gate_up_quantize(dtype))?,
            first: Tensor::new(device, gate_up.output, &[tokens, gate_up.out_features])?,
            between: between
                .map(|format| RowMemory::new(device, format, tokens, down.in_features))
                .transpose()?,
            second_rows: rows(down, network.down_quantize())?,
            second: Tensor::new(device, down.output, &[tokens, down.out_features])?,
        })
    }
}

/// Scratch bytes for so many tokens: where one scale of all tokens is found.
pub(super) fn workspace(device: &Cuda, network: &FeedForward, dtype: DType, tokens: usize) -> u64 {
    let quantize = [
        (network.gate_up_quantize(dtype), network.hidden()),
        (network.down_quantize(), network.intermediate()),
    ];
    let bytes = |(spec, columns): (Option<QuantizeSpec>, usize)| {
        spec.map_or(0, |spec| device.quantize_workspace(&spec, tokens, columns))
    };
    quantize.map(bytes).into_iter().max().unwrap_or(0)
}

/// `S(x)`, times its gate. `tokens` is `x` as the first layer takes it, in INT8 per token if it does.
pub(super) fn run(
    device: &Cuda,
    stream: &mut CudaStream,
    (network, memory, weights): (&FeedForward, &SharedMemory, &SharedWeights<'_, Cuda>),
    x: &Tensor<Cuda>,
    tokens: &Activations<'_, Cuda>,
) -> Result<Tensor<Cuda>> {
    let (rows, expert) = (x.dims()[0], &weights.expert);
    let first = memory.first.narrow(0, 0..rows)?;
    let second = memory.second.narrow(0, 0..rows)?;
    let gate_up = Layer { device, weights: expert.gate_up, bias: expert.gate_up_bias, out: &first };
    gate_up.product(stream, tokens, &memory.first_rows, &expert.gate_up_inputs)?;
    let dtype = network.gate_up.output;
    let spec = network.function.map(|function| ActivationSpec::of(function).with_dtype(dtype));
    let between = match &memory.between {
        Some(between) => between.first(rows)?,
        None => RowMemory::Float(first.clone()),
    };
    match (spec, &between) {
        (Some(spec), RowMemory::Float(out)) => {
            let args = ActivationArgs { spec: &spec, x: &first, out: ActivationOut::Float(out) };
            device.activation(stream, args.check()?)?;
        }
        (Some(spec), RowMemory::Quantized { q, scales, .. }) => {
            let (spec, quantize) = (&spec, &QuantizeSpec::INT8_PER_TOKEN);
            let out = ActivationOut::Quantized { spec: quantize, out: QuantizeOut::new(q, scales) };
            device.activation(stream, ActivationArgs { spec, x: &first, out }.check()?)?;
        }
        (None, RowMemory::Quantized { q, scales, .. }) => {
            let spec = QuantizeSpec::new(dtype);
            device.quantize(stream, QuantizeArgs::new(&spec, &first, q, scales).check()?)?;
        }
        (None, RowMemory::Float(_)) => {}
    }
    let down = Layer { device, weights: expert.down, bias: expert.down_bias, out: &second };
    down.product(stream, &between.activations(), &memory.second_rows, &expert.down_inputs)?;
    if let Some(vector) = weights.gate {
        let (from, to) = (Rows::of(x), Rows::of(&second));
        let launch = gate()
            .tensor("x", x)
            .tensor("shared gate", vector)
            .tensor("out", &second)
            .size("x's stride", from.outer_stride)
            .size("out's stride", to.outer_stride)
            .size("columns", to.columns)
            .int(code(x.dtype()));
        stream.launch(launch.grid([to.outer, 1, 1]))?;
    }
    Ok(second)
}

struct Layer<'a> {
    device: &'a Cuda,
    weights: &'a [CudaPacked],
    /// F32 `[1, weight_rows]`
    bias: Option<&'a Tensor<Cuda>>,
    out: &'a Tensor<Cuda>,
}

impl Layer<'_> {
    /// The product, of rows that are quantised first where there is memory for it.
    fn product(
        &self,
        stream: &mut CudaStream,
        x: &Activations<'_, Cuda>,
        memory: &Option<(QuantizeSpec, RowMemory<Cuda>)>,
        inputs: &LayerInputs<'_, Cuda>,
    ) -> Result<()> {
        let [weights] = self.weights else {
            return Err(unsupported("moe", "more than one shared expert", &self.weights.len()));
        };
        let flat = |tensor: &Tensor<Cuda>| tensor.reshape(&tensor.dims()[1..]);
        let bias = self.bias.map(flat).transpose()?;
        let made = match (memory, x) {
            (Some((spec, memory)), &Activations::Float(x)) => {
                let to = memory.first(x.dims()[0])?.with_static(spec, inputs);
                let RowMemory::Quantized { q, scales, zero_points, outliers, .. } = &to else {
                    return Err(unsupported("moe", "this form of rows", &to));
                };
                let columns = inputs.outlier_columns.map(flat).transpose()?;
                let mut args = QuantizeArgs::new(spec, x, q, scales);
                args.out.zero_points = zero_points.as_ref();
                if let (Some(columns), Some(values)) = (&columns, outliers) {
                    args = args.with_outliers(columns, values);
                }
                self.device.quantize(stream, args.check()?)?;
                Some(to)
            }
            _ => None,
        };
        let x = made.as_ref().map_or_else(|| x.clone(), RowMemory::activations);
        let epilogue = Epilogue { bias: bias.as_ref(), ..Epilogue::default() };
        self.device.linear(stream, LinearArgs { x, weights, epilogue, out: self.out }.check()?)
    }
}
