//! Rows of length 1.

use halite_hal::Result;
use halite_kernels::{
    Support,
    embedding::{L2NormalizeArgs, L2NormalizeSpec},
};

use crate::{
    compile::{Program, Source},
    device::Cuda,
    launch::{Launch, float_type},
    rows::Rows,
    stream::CudaStream,
    support::float_only,
};

static SOURCE: Source = Source::new("embedding/l2_normalize.cu", include_str!("l2_normalize.cu"));

pub(super) fn supports(spec: &L2NormalizeSpec) -> Support {
    float_only(spec.dtype)
}

fn base() -> Launch {
    Launch::new("l2_normalize", &SOURCE, "l2_normalize")
}

/// The program.
pub(super) fn programs() -> Vec<Program> {
    vec![base().program()]
}

pub(super) fn rows(stream: &mut CudaStream, args: &L2NormalizeArgs<'_, Cuda>) -> Result<()> {
    let (x, out) = (Rows::of(args.x), Rows::of(args.out));
    let launch = base()
        .tensor("x", args.x)
        .tensor("out", args.out)
        .size("columns", x.columns)
        .size("x's stride", x.outer_stride)
        .size("out's stride", out.outer_stride)
        .int(float_type(args.x.dtype()))
        .float(args.spec.eps);
    stream.launch(launch.grid([if x.columns == 0 { 0 } else { x.outer }, 1, 1]))
}
