//! Not built yet.

mod lora;

use crate::{
    device::Wgpu,
    unbuilt::{REASON, Unbuilt, unbuilt},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support, linear::HostWeights, linear::Linear, linear::LinearArgs, linear::LinearSpec,
};

impl Linear for Wgpu {
    type Packed = Unbuilt;
    fn linear_supports(&self, _: &LinearSpec) -> Support {
        Support::No(REASON.to_owned())
    }
    fn linear_pack(
        &self,
        _: &mut Self::Stream,
        _: Checked<HostWeights<'_>, &LinearSpec>,
    ) -> Result<Self::Packed> {
        Err(unbuilt("linear"))
    }
    fn linear_save(&self, _: &mut Self::Stream, _: &Self::Packed) -> Result<Vec<u8>> {
        Err(unbuilt("linear"))
    }
    fn linear_restore(&self, _: &mut Self::Stream, _: &LinearSpec, _: &[u8]) -> Result<Self::Packed> {
        Err(unbuilt("linear"))
    }
    fn linear_workspace(&self, _: &Self::Packed, _: usize) -> u64 {
        0
    }
    fn linear(&self, _: &mut Self::Stream, _: Checked<LinearArgs<'_, Self>>) -> Result<()> {
        Err(unbuilt("linear"))
    }
}
