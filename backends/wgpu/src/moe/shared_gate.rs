//! How much of the shared expert a token gets.

use crate::{
    device::Wgpu,
    launch::{Access, LANES_SUM, Launch, Shader, spread},
    operand::Operand,
    rows::Rows,
    stream::WgpuStream,
};
use halite_hal::{Result, Tensor};

static SHARED_GATE: Shader =
    Shader { name: "moe: shared gate", source: &[LANES_SUM, include_str!("shared_gate.wgsl")] };

/// `y[t] *= sigmoid(x[t] · gate)`, row by row.
pub(super) fn apply(
    stream: &mut WgpuStream,
    x: &Tensor<Wgpu>,
    gate: &Tensor<Wgpu>,
    y: &Tensor<Wgpu>,
) -> Result<()> {
    let (from, to) = (Rows::of(x), Rows::of(y));
    let launch = Launch::new(&SHARED_GATE)
        .input("x", x)
        .input("gate", gate)
        .operand("y", Access::InOut, Operand::tensor(y))
        .size("tokens", to.outer)
        .size("columns", to.columns)
        .size("x_stride", from.outer_stride)
        .size("y_stride", to.outer_stride);
    stream.launch(launch, spread(to.outer))
}
