//! The greatest elements of rows: not here yet. Whatever is asked of it is refused by name.

use crate::{
    device::Cuda,
    stream::CudaStream,
    support::{not_yet, unsupported},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    top_k::{TopK, TopKArgs, TopKSpec},
};

impl TopK for Cuda {
    fn top_k_supports(&self, _: &TopKSpec) -> Support {
        not_yet("top_k")
    }

    fn top_k(&self, _: &mut CudaStream, args: Checked<TopKArgs<'_, Self>>) -> Result<()> {
        Err(unsupported("top_k", "it", args.spec))
    }
}
