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
    stream::CudaStream,
};

pub(super) static SOURCE: Source = Source::new("linear/int8.cu", include_str!("int8.cu"));
/// Of groups of rows.
pub(super) static GROUPED: Source = Source::new("linear/grouped_int8.cu", include_str!("grouped_int8.cu"));

/// Whether the layer is one of these.
pub(super) fn has(spec: &LinearSpec) -> bool {
    let groups = matches!(spec.activations, ActivationFormat::Int8PerGroup { .. });
    spec.activations.is_quantized() && spec.weights.is_channel_wise() && !groups
}

/// A tile's launch; `aligned`: rows of `x` begin at multiples of 16 bytes. Other rows are rare, one tile serves them all.
fn start(launch: Launch, tile: Tile, aligned: bool) -> Launch {
    tile.constants(launch).constant("X_ALIGN", if aligned { 16 } else { 1 })
}

fn layer(source: &'static Source, tile: Tile, aligned: bool) -> Launch {
    start(Launch::new("linear", source, "linear_int8"), tile, aligned)
}

/// Of groups of rows that are aligned: the others have the same bits by dot products.
pub(super) fn grouped(operator: &'static str, source: &'static Source, tile: Tile) -> Launch {
    start(Launch::new(operator, source, "grouped_int8"), tile, true)
}

pub(super) fn programs() -> Vec<Program> {
    let tiles = Tile::ALL.map(|tile| (tile, true)).into_iter().chain([(Tile::DECODE, false)]);
    let layers = tiles.map(|(tile, aligned)| layer(&SOURCE, tile, aligned));
    layers
        .chain(Tile::ALL.map(|tile| grouped("grouped", &GROUPED, tile)))
        .map(|launch| launch.program())
        .collect()
}

/// What is multiplied: `Operands` in int8.cuh.
pub(super) fn operands(launch: Launch, call: &Call<'_>) -> Launch {
    let (spec, layout) = (call.spec(), call.packed.layout());
    launch.structure(|launch| {
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
    })
}

/// The call's launch, of this source or one like it.
pub(super) fn launch(source: &'static Source, call: &Call<'_>) -> Result<Launch> {
    let aligned = call.is_aligned();
    let tile = if aligned { Tile::of(call.rows()) } else { Tile::DECODE };
    let launch = operands(layer(source, tile, aligned), call);
    Ok(tile.blocks(call.epilogue(launch)?, call.rows(), call.spec().weight_rows(), 8))
}

pub(super) fn run(stream: &mut CudaStream, call: &Call<'_>) -> Result<()> {
    stream.launch(launch(&SOURCE, call)?)
}
