//! The best of each row: not begun.

use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    top_k::{TopK, TopKArgs, TopKSpec},
};

use crate::{
    device::Ascend,
    stream::AscendStream,
    support::{not_yet, refused},
};

impl TopK for Ascend {
    fn top_k_supports(&self, _: &TopKSpec) -> Support {
        not_yet()
    }

    fn top_k(&self, _: &mut AscendStream, args: Checked<TopKArgs<'_, Self>>) -> Result<()> {
        refused("top_k", args.spec)
    }
}
