//! Rows of length 1.

use crate::{
    device::Wgpu,
    launch::{LANES_SUM, Launch, Shader, spread},
    rows::Rows,
    stream::WgpuStream,
    support::float_only,
};
use halite_hal::Result;
use halite_kernels::{
    Support,
    embedding::{L2NormalizeArgs, L2NormalizeSpec},
};

static L2_NORMALIZE: Shader =
    Shader { name: "l2_normalize", source: &[LANES_SUM, include_str!("l2_normalize.wgsl")] };

pub(super) fn supports(spec: &L2NormalizeSpec) -> Support {
    float_only(spec.dtype)
}

pub(super) fn rows(stream: &mut WgpuStream, args: &L2NormalizeArgs<'_, Wgpu>) -> Result<()> {
    let (x, out) = (Rows::of(args.x), Rows::of(args.out));
    let launch = Launch::new(&L2_NORMALIZE)
        .input("x", args.x)
        .output("out", args.out)
        .size("rows", x.outer)
        .size("columns", x.columns)
        .size("x_stride", x.outer_stride)
        .size("out_stride", out.outer_stride)
        .float("eps", args.spec.eps)
        .rounds(3 * x.columns.div_ceil(256) + 16);
    stream.launch(launch, spread(if x.columns == 0 { 0 } else { x.outer }))
}
