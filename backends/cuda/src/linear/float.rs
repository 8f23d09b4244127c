//! Products of F16 or BF16 by the tensor cores, with every epilogue.

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

static SOURCE: Source = Source::new("linear/float.cu", include_str!("float.cu"));
/// Of groups of rows.
static GROUPED: Source = Source::new("linear/grouped_float.cu", include_str!("grouped_float.cu"));

/// The types that the tensor cores multiply.
const TYPES: [DType; 2] = [DType::F16, DType::Bf16];

/// The type of the layer's activations and weights where it is one of these: both are the same.
pub(super) fn has(spec: &LinearSpec) -> Option<DType> {
    let weights = spec.weights.float_type()?;
    let same = spec.activations == ActivationFormat::Float(weights);
    Some(weights).filter(|weights| same && TYPES.contains(weights))
}

/// A tile's launch; `aligned`: rows of `x` begin at multiples of 16 bytes. Other rows are rare, one tile serves them all.
fn start(launch: Launch, dtype: DType, tile: Tile, aligned: bool) -> Launch {
    tile.constants(launch).constant("X_ALIGN", if aligned { 16 } else { 1 }).element("ELEMENT", dtype)
}

fn layer(dtype: DType, tile: Tile, aligned: bool) -> Launch {
    start(Launch::new("linear", &SOURCE, "linear_float"), dtype, tile, aligned)
}

/// Of groups of rows.
pub(super) fn grouped(operator: &'static str, dtype: DType, tile: Tile, aligned: bool) -> Launch {
    start(Launch::new(operator, &GROUPED, "grouped_float"), dtype, tile, aligned)
}

pub(super) fn programs() -> Vec<Program> {
    let tiles = Tile::ALL.map(|tile| (tile, true)).into_iter().chain([(Tile::DECODE, false)]);
    let of = |(tile, aligned)| {
        let both = move |dtype| [layer(dtype, tile, aligned), grouped("grouped", dtype, tile, aligned)];
        TYPES.into_iter().flat_map(both)
    };
    tiles.flat_map(of).map(|launch| launch.program()).collect()
}

/// What is multiplied: `Operands` in float.cuh.
pub(super) fn operands(launch: Launch, call: &Call<'_>, dtype: DType) -> Launch {
    launch.structure(|launch| {
        launch
            .tensor("x", call.x)
            .bytes("weights", call.packed.buffer(), 0)
            .size("x's stride", stride(call.x).saturating_mul(dtype.size()))
            .size("weights' stride", call.packed.layout().stride)
            .count("rows", call.rows())
            .count("bytes of a row", call.spec().in_features.saturating_mul(dtype.size()))
    })
}

pub(super) fn run(stream: &mut CudaStream, call: &Call<'_>, dtype: DType) -> Result<()> {
    let aligned = call.is_aligned();
    let tile = if aligned { Tile::of(call.rows()) } else { Tile::DECODE };
    let launch = operands(layer(dtype, tile, aligned), call, dtype);
    stream.launch(tile.blocks(call.epilogue(launch)?, call.rows(), call.spec().weight_rows(), 8))
}
