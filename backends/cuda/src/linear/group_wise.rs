//! INT8 activations times integer weights, with scales along K, by the tensor cores: sums of a step exact, and every epilogue.

use halite_hal::Result;
use halite_kernels::linear::{ActivationFormat, GroupOffset, LinearSpec, WeightFormat};

use super::{
    call::{Call, stride},
    steps::Steps,
    tile::Tile,
};
use crate::{
    compile::{Program, Source},
    launch::Launch,
    rows::in_vectors,
    stream::CudaStream,
};

static SOURCE: Source = Source::new("linear/group_wise.cu", include_str!("group_wise.cu"));

/// Columns of a product of the tensor cores: no scale may change within.
const COLUMNS: usize = 32;

/// Whether the layer is one of these.
pub(super) fn has(spec: &LinearSpec) -> bool {
    let steps = Steps::of(spec);
    let whole = steps.step > 0 && (steps.step.is_multiple_of(COLUMNS) || steps.step >= spec.in_features);
    // Less their zero point, they may need nine bits.
    whole && spec.weights != WeightFormat::Int8PerChannelAsymmetric
}

/// A tile's launch; `aligned`: rows of `x` begin at multiples of 16 bytes. Other rows are rare, one tile serves them all.
fn start(bits: usize, tile: Tile, aligned: bool) -> Launch {
    let launch = tile.constants(Launch::new("linear", &SOURCE, "linear_group_wise"));
    launch.constant("X_ALIGN", if aligned { 16 } else { 1 }).constant("W_BITS", bits)
}

pub(super) fn programs() -> Vec<Program> {
    let tiles = [(Tile::DECODE, true), (Tile::MIDDLE, true), (Tile::DECODE, false)];
    let of = |(tile, aligned)| [4, 8].map(|bits| start(bits, tile, aligned).program());
    tiles.into_iter().flat_map(of).collect()
}

pub(super) fn run(stream: &mut CudaStream, call: &Call<'_>) -> Result<()> {
    let (spec, layout, steps) = (call.spec(), call.packed.layout(), Steps::of(call.spec()));
    let aligned = in_vectors(call.x, &[stride(call.x)]);
    // Sums of a step beside those of all steps: the largest tile has no registers for both.
    let tile = if aligned && call.rows() > 16 { Tile::MIDDLE } else { Tile::DECODE };
    let bits = if spec.weights.is_int4() { 4 } else { 8 };
    let offset = match spec.weights.offset() {
        GroupOffset::ZeroPoint => 1,
        GroupOffset::Min => 2,
        _ => 0,
    };
    let x_groups = matches!(spec.activations, ActivationFormat::Int8PerGroup { .. });
    let launch = start(bits, tile, aligned).structure(|launch| {
        let launch = launch
            .tensor("x", call.x)
            .bytes("weights", call.packed.buffer(), 0)
            .maybe("scales", call.scales.filter(|_| x_groups));
        let launch = call.part(launch, spec.weights.is_group_wise().then_some(layout.scales));
        call.part(call.part(launch, layout.offsets), layout.kept)
            .size("x's stride", stride(call.x))
            .size("weights' stride", layout.stride)
            .size("scales' stride", call.scales_stride())
            .count("rows", call.rows())
            .count("in_features", spec.in_features)
            .count("columns of a step", steps.step)
            .count("group_size", steps.w_group)
            .count("columns of a group", steps.x_group)
            .count("groups", layout.groups)
            .int(offset)
    });
    stream.launch(tile.blocks(call.epilogue(launch)?, call.rows(), spec.weight_rows(), bits))
}
