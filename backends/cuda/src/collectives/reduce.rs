//! Elements of all ranks, reduced in ascending rank.

use halite_hal::{DType, Result, Stream, Tensor};
use halite_kernels::collectives::Reduction;

use crate::{
    compile::{Program, Source},
    device::Cuda,
    launch::{Launch, float_type},
    stream::CudaStream,
};

static SOURCE: Source = Source::new("collectives/reduce.cu", include_str!("reduce.cu"));

/// Threads of a block.
const THREADS: usize = 256;
/// The inputs of one launch.
const INPUTS: usize = 8;

/// The number of I32 in the kernel, beside those of floats.
const I32: i32 = 3;

/// What a type is reduced in.
fn wide(dtype: DType) -> DType {
    if dtype.is_float() { DType::F32 } else { DType::I32 }
}

fn base() -> Launch {
    Launch::new("collectives", &SOURCE, "reduce")
}

/// The program of reductions.
pub(super) fn programs() -> Vec<Program> {
    vec![base().program()]
}

/// `out = x[0] + x[1] + …`, or their maximum; all of them dense and of one size. `out` may be one of them: it is written last,
/// each element after it was read.
pub(super) fn reduce(
    stream: &mut CudaStream,
    reduction: Reduction,
    x: &[Tensor<Cuda>],
    out: &Tensor<Cuda>,
) -> Result<()> {
    let (elements, dtype) = (out.shape().elements(), out.dtype());
    if elements == 0 {
        return Ok(());
    }
    let parts = x.len().div_ceil(INPUTS);
    // What is reduced of earlier launches, unrounded.
    let sums = (parts > 1).then(|| Tensor::new(stream.device(), wide(dtype), &[elements])).transpose()?;
    for (part, x) in x.chunks(INPUTS).enumerate() {
        let last = part + 1 == parts;
        let launch = (0..INPUTS).fold(base(), |launch, place| launch.maybe("x", x.get(place)));
        let launch = launch
            .maybe("sums", sums.as_ref())
            .maybe("out", last.then_some(out))
            .size("elements", elements)
            .int(if dtype.is_float() { float_type(dtype) } else { I32 })
            .int((part == 0).into())
            .int((reduction == Reduction::Max).into());
        stream.launch(launch.grid([elements.div_ceil(THREADS), 1, 1]))?;
    }
    Ok(())
}
