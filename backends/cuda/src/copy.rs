//! Copies between tensors of any strides.

use halite_hal::{DType, MAX_RANK, Result, Tensor};

use crate::{
    compile::{Program, Source},
    device::Cuda,
    launch::Launch,
    stream::CudaStream,
};

static SOURCE: Source = Source::new("copy.cu", include_str!("copy.cu"));

/// Types that stand for all of their size.
const SIZES: [DType; 3] = [DType::U8, DType::F16, DType::I32];
/// Threads of a block; each copies elements until there are none.
const THREADS: usize = 256;

/// Copies the elements of `from` to `to`, which has its type and shape.
pub(crate) fn elements(stream: &mut CudaStream, from: &Tensor<Cuda>, to: &Tensor<Cuda>) -> Result<()> {
    let count = from.shape().elements();
    if from.is_dense() && to.is_dense() {
        let bytes = (count * from.dtype().size()) as u64;
        return stream.copy_bytes((to.buffer(), to.offset()), (from.buffer(), from.offset()), bytes);
    }
    let mut launch = base(from.dtype().size()).tensor("from", from).tensor("to", to).size("elements", count);
    // The innermost last, as the kernel has them; leading ones where there are fewer.
    let missing = MAX_RANK - from.dims().len();
    let of = |values: &[usize], axis: usize, else_: usize| {
        axis.checked_sub(missing).and_then(|axis| values.get(axis)).copied().unwrap_or(else_)
    };
    for axis in 1..MAX_RANK {
        launch = launch.size("dims", of(from.dims(), axis, 1));
    }
    for strides in [from.strides(), to.strides()] {
        for axis in 0..MAX_RANK {
            launch = launch.size("strides", of(strides, axis, 0));
        }
    }
    let blocks = count.div_ceil(THREADS).min(stream_blocks(stream));
    stream.launch(launch.grid([blocks, 1, 1]))
}

fn stream_blocks(stream: &CudaStream) -> usize {
    64 * halite_hal::Stream::device(stream).multiprocessors()
}

fn base(size: usize) -> Launch {
    let stands = SIZES.into_iter().find(|dtype| dtype.size() == size).unwrap_or(DType::I32);
    Launch::new("copy", &SOURCE, "copy").element("ELEMENT", stands)
}

/// Every program of copies.
pub(crate) fn programs() -> Vec<Program> {
    SIZES.iter().map(|dtype| base(dtype.size()).program()).collect()
}
