//! Not built yet.

use crate::{
    device::Wgpu,
    unbuilt::{REASON, unbuilt},
};
use halite_hal::Result;
use halite_kernels::{Checked, Support, norm::Norm, norm::NormArgs, norm::NormSpec, quantize::QuantizeSpec};

impl Norm for Wgpu {
    fn norm_supports(&self, _: &NormSpec) -> Support {
        Support::No(REASON.to_owned())
    }
    fn norm_quantize_supports(&self, _: &NormSpec, _: &QuantizeSpec) -> Support {
        Support::No(REASON.to_owned())
    }
    fn norm_quantize_workspace(&self, _: &NormSpec, _: &QuantizeSpec, _: usize, _: usize) -> u64 {
        0
    }
    fn norm(&self, _: &mut Self::Stream, _: Checked<NormArgs<'_, Self>>) -> Result<()> {
        Err(unbuilt("norm"))
    }
}
