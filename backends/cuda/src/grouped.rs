//! Grouped products: not here yet. Whatever is asked of it is refused by name.

use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    grouped::{Grouped, GroupedArgs},
    linear::LinearSpec,
};

use crate::linear::CudaPacked;
use crate::{
    device::Cuda,
    stream::CudaStream,
    support::{not_yet, unsupported},
};

impl Grouped for Cuda {
    fn grouped_supports(&self, _: &LinearSpec) -> Support {
        not_yet("grouped")
    }

    fn grouped_workspace(&self, _: &CudaPacked, _max_rows: usize) -> u64 {
        0
    }

    fn grouped(&self, _: &mut CudaStream, args: Checked<GroupedArgs<'_, Self>>) -> Result<()> {
        Err(unsupported("grouped", "it", &*args))
    }
}
