//! Rows of length 1.

use halite_hal::{DType, Result};
use halite_kernels::{
    Support,
    embedding::{L2NormalizeArgs, L2NormalizeSpec},
};

use crate::{
    compile::{Program, Source},
    device::Cuda,
    launch::Launch,
    rows::Rows,
    stream::CudaStream,
    support::float_only,
};

static SOURCE: Source = Source::new("embedding/l2_normalize.cu", include_str!("l2_normalize.cu"));

pub(super) fn supports(spec: &L2NormalizeSpec) -> Support {
    float_only(spec.dtype)
}

fn base(dtype: DType) -> Launch {
    Launch::new("l2_normalize", &SOURCE, "l2_normalize").element("X", dtype)
}

/// Every program of it.
pub(super) fn programs() -> Vec<Program> {
    [DType::F32, DType::F16, DType::Bf16].map(|dtype| base(dtype).program()).into()
}

pub(super) fn rows(stream: &mut CudaStream, args: &L2NormalizeArgs<'_, Cuda>) -> Result<()> {
    let (x, out) = (Rows::of(args.x), Rows::of(args.out));
    let launch = base(args.x.dtype())
        .tensor("x", args.x)
        .tensor("out", args.out)
        .size("columns", x.columns)
        .size("x's stride", x.outer_stride)
        .size("out's stride", out.outer_stride)
        .float(args.spec.eps);
    stream.launch(launch.grid([if x.columns == 0 { 0 } else { x.outer }, 1, 1]))
}
