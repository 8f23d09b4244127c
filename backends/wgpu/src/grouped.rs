//! Not built yet.

use crate::{
    device::Wgpu,
    unbuilt::{REASON, unbuilt},
};
use halite_hal::Result;
use halite_kernels::{Checked, Support, grouped::Grouped, grouped::GroupedArgs, linear::LinearSpec};

impl Grouped for Wgpu {
    fn grouped_supports(&self, _: &LinearSpec) -> Support {
        Support::No(REASON.to_owned())
    }
    fn grouped_workspace(&self, _: &Self::Packed, _: usize) -> u64 {
        0
    }
    fn grouped(&self, _: &mut Self::Stream, _: Checked<GroupedArgs<'_, Self>>) -> Result<()> {
        Err(unbuilt("grouped"))
    }
}
