//! INT8 products without scales along K, by the tensor cores: the sums exact in i32, and every epilogue.

use halite_hal::{DType, Result};
use halite_kernels::linear::{ActivationFormat, LinearSpec};

use super::{
    call::{Call, stride},
    tile::Tile,
};
use crate::{
    compile::{Program, Source},
    launch::Launch,
    rows::in_vectors,
    stream::CudaStream,
};

pub(super) static SOURCE: Source = Source::new("linear/int8.cu", include_str!("int8.cu"));
/// The kernel's name in its module.
const KERNEL: &str = "linear_int8";

/// Whether the layer is one of these.
pub(super) fn has(spec: &LinearSpec) -> bool {
    let groups = matches!(spec.activations, ActivationFormat::Int8PerGroup { .. });
    spec.activations.is_quantized() && spec.weights.is_channel_wise() && !groups
}

/// A tile's launch; `aligned`: rows of `x` begin at multiples of 16 bytes. Other rows are rare, one tile serves them all.
fn start(source: &'static Source, tile: Tile, aligned: bool) -> Launch {
    let launch = tile.constants(Launch::new("linear", source, KERNEL));
    launch.constant("X_ALIGN", if aligned { 16 } else { 1 })
}

pub(super) fn programs() -> Vec<Program> {
    let tiles = Tile::ALL.map(|tile| (tile, true)).into_iter().chain([(Tile::DECODE, false)]);
    tiles.map(|(tile, aligned)| start(&SOURCE, tile, aligned).program()).collect()
}

/// The call's launch, of this source or one like it.
pub(super) fn launch(source: &'static Source, call: &Call<'_>) -> Result<Launch> {
    let (spec, layout) = (call.spec(), call.packed.layout());
    let aligned = in_vectors(call.x, &[stride(call.x)]);
    let tile = if aligned { Tile::of(call.rows()) } else { Tile::DECODE };
    let launch = start(source, tile, aligned).structure(|launch| {
        let launch = launch
            .tensor("x", call.x)
            .bytes("weights", call.packed.buffer(), 0)
            .maybe("zero_points", call.zero_points);
        call.part(call.part(launch, layout.offsets), layout.sums)
            .size("x's stride", stride(call.x))
            .size("weights' stride", layout.stride)
            .count("rows", call.rows())
            .count("in_features", spec.in_features)
            .int((spec.activations.dtype() == DType::U8).into())
    });
    Ok(tile.blocks(call.epilogue(launch)?, call.rows(), spec.weight_rows(), 8))
}

pub(super) fn run(stream: &mut CudaStream, call: &Call<'_>) -> Result<()> {
    stream.launch(launch(&SOURCE, call)?)
}
