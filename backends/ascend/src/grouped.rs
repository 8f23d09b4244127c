//! Grouped products: not begun.

use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    grouped::{Grouped, GroupedArgs},
    linear::LinearSpec,
};

use crate::{
    device::Ascend,
    linear::AscendPacked,
    stream::AscendStream,
    support::{not_yet, refused},
};

impl Grouped for Ascend {
    fn grouped_supports(&self, _: &LinearSpec) -> Support {
        not_yet()
    }

    fn grouped_workspace(&self, _: &AscendPacked, _max_rows: usize) -> u64 {
        0
    }

    fn grouped(&self, _: &mut AscendStream, args: Checked<GroupedArgs<'_, Self>>) -> Result<()> {
        refused("grouped", &args.weights.first().map(AsRef::as_ref))
    }
}
