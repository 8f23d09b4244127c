//! Blocks of columns rotated, as an operator and before rows are quantised.

use halite_hal::{DType, Result, Tensor};

use crate::{
    compile::{Program, Source},
    device::Cuda,
    launch::Launch,
    stream::CudaStream,
};

static SOURCE: Source = Source::new("quantize/rotate.cu", include_str!("rotate.cu"));

/// Columns that a block of threads has, unless one block of the matrix is larger.
const TILE: usize = 1024;

fn base(x: DType, out: DType) -> Launch {
    Launch::new("rotate", &SOURCE, "rotate").element("X", x).element("OUT", out)
}

/// Rotates `[rows, columns]` of `x`, whose rows lie `strides[0]` elements apart, to `out` with `strides[1]`; each column is
/// divided by its factor before, where there are factors.
pub(super) fn rows(
    stream: &mut CudaStream,
    [x, out]: [&Tensor<Cuda>; 2],
    strides: [usize; 2],
    [rows, columns]: [usize; 2],
    block: usize,
    factors: Option<&Tensor<Cuda>>,
) -> Result<()> {
    let tile = block.max(TILE);
    let parts = columns.div_ceil(tile);
    let launch = base(x.dtype(), out.dtype())
        .tensor("x", x)
        .tensor("out", out)
        .maybe("factors", factors)
        .size("x's stride", strides[0])
        .size("out's stride", strides[1])
        .size("columns", columns)
        .size("parts", parts)
        .count("tile", tile)
        .count("block", block)
        .float(1.0 / (block as f32).sqrt());
    stream.launch(launch.shared(4 * tile).grid([rows.saturating_mul(parts), 1, 1]))
}

/// Every program of rotations: to the same type, and to F32.
pub(super) fn programs() -> Vec<Program> {
    let pairs = [
        (DType::F32, DType::F32),
        (DType::F16, DType::F16),
        (DType::F16, DType::F32),
        (DType::Bf16, DType::Bf16),
        (DType::Bf16, DType::F32),
    ];
    pairs.map(|(x, out)| base(x, out).program()).into()
}
