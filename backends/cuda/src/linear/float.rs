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
    rows::in_vectors,
    stream::CudaStream,
};

static SOURCE: Source = Source::new("linear/float.cu", include_str!("float.cu"));

/// The types that the tensor cores multiply.
const TYPES: [DType; 2] = [DType::F16, DType::Bf16];

/// The type of the layer's activations and weights where it is one of these: both are the same.
pub(super) fn has(spec: &LinearSpec) -> Option<DType> {
    let weights = spec.weights.float_type()?;
    let same = spec.activations == ActivationFormat::Float(weights);
    Some(weights).filter(|weights| same && TYPES.contains(weights))
}

/// A tile's launch; `aligned`: rows of `x` begin at multiples of 16 bytes. Other rows are rare, one tile serves them all.
fn start(dtype: DType, tile: Tile, aligned: bool) -> Launch {
    let launch = tile.constants(Launch::new("linear", &SOURCE, "linear_float"));
    launch.constant("X_ALIGN", if aligned { 16 } else { 1 }).element("ELEMENT", dtype)
}

pub(super) fn programs() -> Vec<Program> {
    let tiles = Tile::ALL.map(|tile| (tile, true)).into_iter().chain([(Tile::DECODE, false)]);
    let of = |(tile, aligned)| TYPES.map(|dtype| start(dtype, tile, aligned).program());
    tiles.flat_map(of).collect()
}

pub(super) fn run(stream: &mut CudaStream, call: &Call<'_>, dtype: DType) -> Result<()> {
    let (spec, layout) = (call.spec(), call.packed.layout());
    let aligned = in_vectors(call.x, &[stride(call.x)]);
    let tile = if aligned { Tile::of(call.rows()) } else { Tile::DECODE };
    let launch = start(dtype, tile, aligned).structure(|launch| {
        launch
            .tensor("x", call.x)
            .bytes("weights", call.packed.buffer(), 0)
            .size("x's stride", stride(call.x).saturating_mul(dtype.size()))
            .size("weights' stride", layout.stride)
            .count("rows", call.rows())
            .count("bytes of a row", spec.in_features.saturating_mul(dtype.size()))
    });
    stream.launch(tile.blocks(call.epilogue(launch)?, call.rows(), spec.weight_rows(), 8))
}
