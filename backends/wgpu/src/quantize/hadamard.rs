//! Blocks of columns rotated, as an operator and before rows are quantised.

use crate::{
    device::Wgpu,
    launch::{Access, Launch, Shader, spread},
    operand::Operand,
    stream::WgpuStream,
};
use halite_hal::{DType, Result, Tensor};

static HADAMARD: Shader = Shader { name: "rotate", source: &[include_str!("hadamard.wgsl")] };

/// Elements that a workgroup makes: the shader's HELD.
const HELD: usize = 1024;

/// Rows in memory, `stride` elements from one to the next.
pub(super) struct Lines {
    pub(super) memory: Operand,
    pub(super) stride: usize,
}

/// Rotates `[rows, columns]` of `x`, each column divided by its factor where there are factors.
pub(super) fn rotate(
    stream: &mut WgpuStream,
    x: Lines,
    out: Lines,
    [rows, columns]: [usize; 2],
    block: usize,
    factors: Option<&Tensor<Wgpu>>,
) -> Result<()> {
    let launch = Launch::new(&HADAMARD)
        .operand("x", Access::In, x.memory)
        .operand("out", Access::Out, out.memory)
        .maybe("factors", Access::In, DType::F32, factors)
        .size("elements", rows * columns)
        .size("columns", columns)
        .size("block", block)
        .size("x_stride", x.stride)
        .size("out_stride", out.stride)
        .float("factor", 1.0 / (block as f32).sqrt())
        // Each of four elements is made of one of every part, and four pairs a step are joined.
        .rounds(4 * block.div_ceil(HELD) + 64);
    stream.launch(launch, spread((rows * columns).div_ceil(HELD)))
}
