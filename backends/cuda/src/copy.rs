//! Copies between tensors of any strides.

use halite_hal::{MAX_RANK, Result, Tensor};

use crate::{
    compile::{Program, Source},
    device::Cuda,
    launch::Launch,
    stream::CudaStream,
};

static SOURCE: Source = Source::new("copy.cu", include_str!("copy.cu"));

/// Threads of a block; each copies elements until there are none.
const THREADS: usize = 256;

/// Copies the elements of `from` to `to`, which has its type and shape.
pub(crate) fn elements(stream: &mut CudaStream, from: &Tensor<Cuda>, to: &Tensor<Cuda>) -> Result<()> {
    let count = from.shape().elements();
    if from.is_dense() && to.is_dense() {
        let bytes = (count * from.dtype().size()) as u64;
        return stream.copy_bytes((to.buffer(), to.offset()), (from.buffer(), from.offset()), bytes);
    }
    let mut launch = base().tensor("from", from).tensor("to", to).size("elements", count);
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
    // One, two or four bytes.
    let size = from.dtype().size() as i32;
    stream.launch(launch.int(size).grid([blocks, 1, 1]))
}

fn stream_blocks(stream: &CudaStream) -> usize {
    64 * halite_hal::Stream::device(stream).multiprocessors()
}

fn base() -> Launch {
    Launch::new("copy", &SOURCE, "copy")
}

/// The program of copies.
pub(crate) fn programs() -> Vec<Program> {
    vec![base().program()]
}
