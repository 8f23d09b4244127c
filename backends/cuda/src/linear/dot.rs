//! Layers of every format by dot products: a warp a result.

use halite_hal::{DType, Result};
use halite_kernels::linear::{GroupOffset, WeightFormat};

use super::{
    call::{Call, stride, type_code},
    steps::Steps,
};
use crate::{
    compile::{Program, Source},
    launch::Launch,
    stream::CudaStream,
    support::unsupported,
};

static SOURCE: Source = Source::new("linear/dot.cu", include_str!("dot.cu"));

/// Results of a block.
pub(super) const RESULTS: usize = 8;

fn start() -> Launch {
    Launch::new("linear", &SOURCE, "linear_dot")
}

pub(super) fn program() -> Program {
    start().program()
}

fn weight_code(format: WeightFormat) -> i32 {
    match format.float_type().and_then(type_code) {
        Some(code) => code,
        None if format.is_int4() => 6,
        None => 3,
    }
}

/// What is multiplied: `Operands` in dot.cuh.
pub(super) fn operands(launch: Launch, call: &Call<'_>) -> Result<Launch> {
    let (spec, layout) = (call.spec(), call.packed.layout());
    let size = spec.weights.float_type().map_or(1, DType::size);
    // Elements; two INT4 are a byte.
    let w_stride = if spec.weights.is_int4() { 2 * layout.stride } else { layout.stride / size };
    let Steps { x_group, w_group, step } = Steps::of(spec);
    let offset = match spec.weights.offset() {
        GroupOffset::Symmetric => 0,
        GroupOffset::ZeroPoint => 1,
        GroupOffset::Min => 2,
        _ => return Err(unsupported(call.operator, "this form of offsets", spec)),
    };
    let x_type = call.type_code(spec.activations.dtype())?;
    Ok(launch.structure(|launch| {
        let launch =
            launch.tensor("x", call.x).bytes("weights", call.packed.buffer(), 0).maybe("scales", call.scales);
        let launch = call.part(launch, Some(layout.scales).filter(|_| layout.groups > 0));
        let launch = call.part(launch.maybe("zero_points", call.zero_points), layout.offsets);
        call.part(launch, layout.kept)
            .size("x's stride", stride(call.x))
            .size("weights' stride", w_stride)
            .size("scales' stride", call.scales_stride())
            .count("in_features", spec.in_features)
            .int(x_type)
            .int(weight_code(spec.weights))
            .int(offset)
            .count("groups", layout.groups)
            .count("group_size", w_group)
            .count("columns of a group", x_group)
            .count("columns of a step", step)
            .int(spec.weights.is_channel_wise().into())
    }))
}

pub(super) fn run(stream: &mut CudaStream, call: &Call<'_>) -> Result<()> {
    let launch = call
        .epilogue(operands(start(), call)?)?
        .maybe("plan", call.only.map(|only| only.adapters))
        .count("adapter", call.only.map_or(0, |only| only.adapter))
        .grid([call.rows(), call.spec().out_features.div_ceil(RESULTS), 1]);
    stream.launch(launch)
}
