//! Not built yet.

use crate::{
    device::Wgpu,
    unbuilt::{REASON, unbuilt},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support, quantize::Quantize, quantize::QuantizeArgs, quantize::QuantizeSpec,
    quantize::RotateArgs, quantize::RotateSpec,
};

impl Quantize for Wgpu {
    fn quantize_supports(&self, _: &QuantizeSpec) -> Support {
        Support::No(REASON.to_owned())
    }
    fn quantize_workspace(&self, _: &QuantizeSpec, _: usize, _: usize) -> u64 {
        0
    }
    fn quantize(&self, _: &mut Self::Stream, _: Checked<QuantizeArgs<'_, Self>>) -> Result<()> {
        Err(unbuilt("quantize"))
    }
    fn rotate_supports(&self, _: &RotateSpec) -> Support {
        Support::No(REASON.to_owned())
    }
    fn rotate(&self, _: &mut Self::Stream, _: Checked<RotateArgs<'_, Self>>) -> Result<()> {
        Err(unbuilt("quantize"))
    }
}
