//! Not built yet.

use crate::{
    device::Wgpu,
    unbuilt::{REASON, unbuilt},
};
use halite_hal::Result;
use halite_kernels::{Checked, Support, top_k::TopK, top_k::TopKArgs, top_k::TopKSpec};

impl TopK for Wgpu {
    fn top_k_supports(&self, _: &TopKSpec) -> Support {
        Support::No(REASON.to_owned())
    }
    fn top_k(&self, _: &mut Self::Stream, _: Checked<TopKArgs<'_, Self>>) -> Result<()> {
        Err(unbuilt("top_k"))
    }
}
