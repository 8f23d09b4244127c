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
    stream::CudaStream,
};

static SOURCE: Source = Source::new("linear/group_wise.cu", include_str!("group_wise.cu"));
/// Of groups of rows.
static GROUPED: Source = Source::new("linear/grouped_group_wise.cu", include_str!("grouped_group_wise.cu"));

/// Columns of a product of the tensor cores: no scale may change within.
const COLUMNS: usize = 32;

/// Whether the layer is one of these.
pub(super) fn has(spec: &LinearSpec) -> bool {
    let steps = Steps::of(spec);
    let whole = steps.step > 0 && (steps.step.is_multiple_of(COLUMNS) || steps.step >= spec.in_features);
    // Less their zero point, they may need nine bits.
    whole && spec.weights != WeightFormat::Int8PerChannelAsymmetric
}

/// The tile for so many rows. Sums of a step are beside those of all steps: the largest has no registers for both.
pub(super) fn tile(rows: usize) -> Tile {
    if rows > 16 { Tile::MIDDLE } else { Tile::DECODE }
}

/// Bits of a weight.
pub(super) fn bits(spec: &LinearSpec) -> usize {
    if spec.weights.is_int4() { 4 } else { 8 }
}

/// A tile's launch; `aligned`: rows of `x` begin at multiples of 16 bytes. Other rows are rare, one tile serves them all.
fn start(launch: Launch, bits: usize, tile: Tile, aligned: bool) -> Launch {
    tile.constants(launch).constant("X_ALIGN", if aligned { 16 } else { 1 }).constant("W_BITS", bits)
}

fn layer(bits: usize, tile: Tile, aligned: bool) -> Launch {
    start(Launch::new("linear", &SOURCE, "linear_group_wise"), bits, tile, aligned)
}

/// Of groups of rows that are aligned: the others have the same bits by dot products.
pub(super) fn grouped(operator: &'static str, bits: usize, tile: Tile) -> Launch {
    start(Launch::new(operator, &GROUPED, "grouped_group_wise"), bits, tile, true)
}

pub(super) fn programs() -> Vec<Program> {
    let of = |bits| {
        let both = move |tile| [layer(bits, tile, true), grouped("grouped", bits, tile)];
        let aligned = [Tile::DECODE, Tile::MIDDLE].into_iter().flat_map(both);
        aligned.chain([layer(bits, Tile::DECODE, false)])
    };
    [4, 8].into_iter().flat_map(of).map(|launch| launch.program()).collect()
}

/// What is multiplied: `Operands` in group_wise.cuh.
pub(super) fn operands(launch: Launch, call: &Call<'_>) -> Launch {
    let (spec, layout, steps) = (call.spec(), call.packed.layout(), Steps::of(call.spec()));
    let offset = match spec.weights.offset() {
        GroupOffset::ZeroPoint => 1,
        GroupOffset::Min => 2,
        _ => 0,
    };
    let x_groups = matches!(spec.activations, ActivationFormat::Int8PerGroup { .. });
    launch.structure(|launch| {
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
    })
}

pub(super) fn run(stream: &mut CudaStream, call: &Call<'_>) -> Result<()> {
    let (aligned, bits) = (call.is_aligned(), bits(call.spec()));
    let tile = if aligned { tile(call.rows()) } else { Tile::DECODE };
    let launch = operands(layer(bits, tile, aligned), call);
    stream.launch(tile.blocks(call.epilogue(launch)?, call.rows(), call.spec().weight_rows(), bits))
}
