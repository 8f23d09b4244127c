//! Linear layers as an operator: INT8 with scales of rows and channels by the tensor cores, all other forms by dot products.

use halite_hal::{Result, Tensor};
use halite_kernels::{
    Checked, Support,
    linear::{ActivationFormat, HostWeights, Linear, LinearArgs, LinearSpec, OutputScale, WeightFormat},
};

use super::{
    form::{Form, Input, stride, type_code},
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
};

pub(super) static SOURCE: Source = Source::new("linear/dot.cu", include_str!("dot.cu"));

/// Results of a block of the dot products.
pub(super) const RESULTS: usize = 8;
/// Groups whose weights one launch knows: their addresses are parameters.
pub(super) const MOST_GROUPS: usize = 256;

fn dot() -> Launch {
    Launch::new("linear", &SOURCE, "linear_dot")
}

pub(super) fn program() -> Program {
    dot().program()
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
    let input = Input::of("linear", &args.x)?;
    by_dot_products(stream, args, &input, Some(only))
}

fn by_dot_products(
    stream: &mut CudaStream,
    args: &LinearArgs<'_, Cuda>,
    input: &Input<'_>,
    only: Option<Only<'_>>,
) -> Result<()> {
    let (packed, to) = (args.weights, Rows::of(args.out));
    let (spec, layout, after) = (packed.as_ref(), packed.layout(), &args.epilogue);
    let form = Form::of("linear", spec, layout, after.activation)?;
    let part = |launch: Launch, at: Option<usize>| match at {
        Some(at) => launch.bytes("weights", packed.buffer(), at as u64),
        None => launch.bits(0),
    };
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
        .size("weights' stride", form.w_stride)
        .size("scales' stride", input.scales_stride(spec))
        .size("outliers' stride", input.outliers.map_or(0, stride))
        .size("residual's stride", after.residual.map_or(0, stride))
        .size("out's stride", to.outer_stride);
    let launch = form
        .parameters(launch)
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
        let input = Input::of("linear", &args.x)?;
        match is_plain(&args, args.weights.as_ref()) {
            Some(out) => by_tensor_cores(stream, &args, &input, out),
            None => by_dot_products(stream, &args, &input, None),
        }
    }
}
