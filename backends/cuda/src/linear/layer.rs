//! Linear layers as an operator: INT8 with scales of rows and channels by the tensor cores, all other forms by dot products.

use halite_hal::{DType, Result, Tensor};
use halite_kernels::{
    Checked, Support,
    linear::{
        ActivationFormat, Activations, GroupOffset, HostWeights, Linear, LinearArgs, LinearSpec, OutputScale,
        WeightFormat,
    },
};

use super::{
    int8::{self, Alignment, Out},
    packed::{self, CudaPacked},
};
use crate::{
    activation::code,
    compile::{Program, Source},
    device::Cuda,
    launch::Launch,
    rows::{Rows, in_vectors},
    stream::CudaStream,
    support::unsupported,
};

static SOURCE: Source = Source::new("linear/dot.cu", include_str!("dot.cu"));

/// Results of a block of the dot products.
const RESULTS: usize = 8;
/// No activation.
const NO_FUNCTION: i32 = -1;

fn dot() -> Launch {
    Launch::new("linear", &SOURCE, "linear_dot")
}

pub(super) fn program() -> Program {
    dot().program()
}

/// The number that dot.cu knows a type by.
fn type_code(dtype: DType) -> Option<i32> {
    match dtype {
        DType::F32 => Some(0),
        DType::F16 => Some(1),
        DType::Bf16 => Some(2),
        DType::I8 => Some(3),
        DType::U8 => Some(4),
        DType::I32 => Some(5),
        _ => None,
    }
}

fn weight_code(format: WeightFormat) -> i32 {
    match format.float_type().and_then(type_code) {
        Some(code) => code,
        None if format.is_int4() => 6,
        None => 3,
    }
}

/// Elements from one row to the next.
fn stride(tensor: &Tensor<Cuda>) -> usize {
    match tensor.dims() {
        // One row, whatever it is.
        [_] => 1,
        _ => Rows::of(tensor).outer_stride,
    }
}

/// A call's tensors of activations.
struct Input<'a> {
    x: &'a Tensor<Cuda>,
    scales: Option<&'a Tensor<Cuda>>,
    zero_points: Option<&'a Tensor<Cuda>>,
    outliers: Option<&'a Tensor<Cuda>>,
}

impl<'a> Input<'a> {
    fn of(x: &Activations<'a, Cuda>) -> Result<Self> {
        match (x, x.quantized()) {
            (_, Some(x)) => {
                Ok(Input { x: x.q, scales: Some(x.scales), zero_points: x.zero_points, outliers: x.outliers })
            }
            (&Activations::Float(x), _) => Ok(Input { x, scales: None, zero_points: None, outliers: None }),
            (other, _) => Err(unsupported("linear", "this form of activations", other)),
        }
    }
}

/// Whether the tensor cores have the form: symmetric INT8, a scale a row, nothing but scales behind it.
fn is_plain(args: &LinearArgs<'_, Cuda>, spec: &LinearSpec) -> Option<Out> {
    let after = &args.epilogue;
    let nothing = after.bias.is_none()
        && after.activation.is_none()
        && after.soft_cap.is_none()
        && after.residual.is_none();
    let plain = nothing
        && spec.activations == ActivationFormat::Int8PerToken
        && spec.weights == WeightFormat::Int8PerChannel
        && spec.gate.is_none()
        && spec.outliers.is_none();
    Out::of(spec.output).filter(|_| plain)
}

fn by_tensor_cores(
    stream: &mut CudaStream,
    args: &LinearArgs<'_, Cuda>,
    input: &Input<'_>,
    out: Out,
) -> Result<()> {
    let (packed, spec, to) = (args.weights, args.weights.as_ref(), Rows::of(args.out));
    let (layout, x_stride) = (packed.layout(), stride(input.x));
    let aligned = in_vectors(input.x, &[x_stride]);
    let alignment = if aligned { Alignment::Bytes16 } else { Alignment::Bytes1 };
    let launch = int8::launch(out, alignment, to.outer, spec.out_features)
        .tensor("x", input.x)
        .bytes("weights", packed.buffer(), 0)
        .maybe("scales", input.scales)
        .bytes("weights", packed.buffer(), layout.scales as u64)
        .tensor("out", args.out)
        .size("x's stride", x_stride)
        .size("weights' stride", layout.stride)
        .size("out's stride", to.outer_stride)
        .count("rows", to.outer)
        .count("out_features", spec.out_features)
        .count("in_features", spec.in_features);
    stream.launch(launch)
}

/// Only the rows of one adapter, their products times its scale.
#[derive(Clone, Copy)]
pub(super) struct Only<'a> {
    /// I32, the adapter of each row.
    pub(super) adapters: &'a Tensor<Cuda>,
    pub(super) adapter: usize,
    pub(super) scale: f32,
}

/// Times floats; none of the result's rows but those of `only`.
pub(super) fn floats(stream: &mut CudaStream, args: &LinearArgs<'_, Cuda>, only: Only<'_>) -> Result<()> {
    let input = Input::of(&args.x)?;
    by_dot_products(stream, args, &input, Some(only))
}

fn by_dot_products(
    stream: &mut CudaStream,
    args: &LinearArgs<'_, Cuda>,
    input: &Input<'_>,
    only: Option<Only<'_>>,
) -> Result<()> {
    let (packed, spec, to) = (args.weights, args.weights.as_ref(), Rows::of(args.out));
    let (layout, after) = (packed.layout(), &args.epilogue);
    let unknown = |what| unsupported("linear", what, spec);
    let known = |dtype| type_code(dtype).ok_or_else(|| unknown("this type"));
    let function = match spec.gate.or(after.activation) {
        Some(function) => code(function).ok_or_else(|| unknown("this activation"))?,
        None => NO_FUNCTION,
    };
    let part = |launch: Launch, at: Option<usize>| match at {
        Some(at) => launch.bytes("weights", packed.buffer(), at as u64),
        None => launch.bits(0),
    };
    let size = spec.weights.float_type().map_or(1, DType::size);
    // Elements; two INT4 are a byte.
    let w_stride = if spec.weights.is_int4() { 2 * layout.stride } else { layout.stride / size };
    let x_group = match spec.activations {
        ActivationFormat::Int8PerGroup { group_size } => group_size.min(spec.in_features),
        _ => 0,
    };
    let offset = match spec.weights.offset() {
        GroupOffset::Symmetric => 0,
        GroupOffset::ZeroPoint => 1,
        GroupOffset::Min => 2,
        _ => return Err(unknown("this form of offsets")),
    };
    let w_group = spec.weights.group_size(spec.in_features).map_or(1, |size| size.min(spec.in_features));
    let step = match (spec.activations.is_quantized(), x_group) {
        (true, 0) if spec.weights.is_group_wise() => w_group,
        (true, x_group) if x_group > 0 => x_group.min(w_group),
        _ => 0,
    };
    let scales_stride = if spec.activations.is_per_tensor() { 0 } else { input.scales.map_or(0, stride) };
    let OutputScale { scale, zero_point, .. } = after.output_scale.unwrap_or(OutputScale::new(1.0));
    let launch =
        dot().tensor("x", input.x).bytes("weights", packed.buffer(), 0).maybe("scales", input.scales);
    let launch = part(launch, Some(layout.scales).filter(|_| layout.groups > 0));
    let launch = part(launch.maybe("zero_points", input.zero_points), layout.offsets);
    let launch = part(launch, layout.kept).maybe("outliers", input.outliers);
    let launch = part(launch, layout.outliers)
        .maybe("bias", after.bias)
        .maybe("residual", after.residual)
        .tensor("out", args.out)
        .size("x's stride", stride(input.x))
        .size("weights' stride", w_stride)
        .size("scales' stride", scales_stride)
        .size("outliers' stride", input.outliers.map_or(0, stride))
        .size("residual's stride", after.residual.map_or(0, stride))
        .size("out's stride", to.outer_stride)
        .count("out_features", spec.out_features)
        .count("in_features", spec.in_features)
        .int(known(spec.activations.dtype())?)
        .int(weight_code(spec.weights))
        .int(known(spec.output)?)
        .int(offset)
        .count("groups", layout.groups)
        .count("group_size", w_group)
        .count("columns of a group", x_group)
        .count("outliers", spec.outliers.map_or(0, |outliers| outliers.columns))
        .int(match spec.outliers {
            Some(outliers) => known(outliers.dtype)?,
            None => 0,
        })
        .count("columns of a step", step)
        .int(spec.weights.is_channel_wise().into())
        .int(spec.gate.is_some().into())
        .int(function)
        .int(zero_point)
        .float(scale)
        .float(after.soft_cap.unwrap_or(0.0))
        .maybe("plan", only.map(|only| only.adapters))
        .count("adapter", only.map_or(0, |only| only.adapter))
        .float(only.map_or(1.0, |only| only.scale))
        .grid([to.outer, spec.out_features.div_ceil(RESULTS), 1]);
    stream.launch(launch)
}

impl Linear for Cuda {
    type Packed = CudaPacked;

    fn linear_supports(&self, spec: &LinearSpec) -> Support {
        if spec.gate.is_some_and(|gate| code(gate).is_none()) {
            return Support::No(format!("{:?} is not implemented", spec.gate));
        }
        if type_code(spec.output).is_none() {
            return Support::No(format!("an output of {} is not implemented", spec.output));
        }
        Support::Native
    }

    fn linear_pack(
        &self,
        stream: &mut CudaStream,
        weights: Checked<HostWeights<'_>, &LinearSpec>,
    ) -> Result<CudaPacked> {
        self.linear_supports(weights.context()).require("linear", self, *weights.context())?;
        packed::pack(self, stream, &weights)
    }

    fn linear_save(&self, stream: &mut CudaStream, packed: &CudaPacked) -> Result<Vec<u8>> {
        packed::save(stream, packed)
    }

    fn linear_restore(&self, stream: &mut CudaStream, spec: &LinearSpec, saved: &[u8]) -> Result<CudaPacked> {
        spec.check()?;
        self.linear_supports(spec).require("linear", self, spec)?;
        packed::restore(self, stream, spec, saved)
    }

    fn linear_workspace(&self, _: &CudaPacked, _max_rows: usize) -> u64 {
        0
    }

    fn linear(&self, stream: &mut CudaStream, args: Checked<LinearArgs<'_, Self>>) -> Result<()> {
        let input = Input::of(&args.x)?;
        match is_plain(&args, args.weights.as_ref()) {
            Some(out) => by_tensor_cores(stream, &args, &input, out),
            None => by_dot_products(stream, &args, &input, None),
        }
    }
}
