//! Not built yet.

use crate::{
    device::Wgpu,
    unbuilt::{REASON, Unbuilt, unbuilt},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support, attention::AttentionCapacity, attention::AttentionLimits, attention::AttentionStep,
    mla::AbsorbArgs, mla::LatentAttention, mla::MlaArgs, mla::MlaSpec, mla::MlaWeights, mla::UpProjectArgs,
};

impl LatentAttention for Wgpu {
    type MlaPacked = Unbuilt;
    type MlaPlan = Unbuilt;
    fn mla_supports(&self, _: &MlaSpec) -> Support {
        Support::No(REASON.to_owned())
    }
    fn mla_pack(
        &self,
        _: &mut Self::Stream,
        _: Checked<MlaWeights<'_>, &MlaSpec>,
    ) -> Result<Self::MlaPacked> {
        Err(unbuilt("mla"))
    }
    fn mla_save(&self, _: &mut Self::Stream, _: &Self::MlaPacked) -> Result<Vec<u8>> {
        Err(unbuilt("mla"))
    }
    fn mla_restore(&self, _: &mut Self::Stream, _: &MlaSpec, _: &[u8]) -> Result<Self::MlaPacked> {
        Err(unbuilt("mla"))
    }
    fn absorb(&self, _: &mut Self::Stream, _: Checked<AbsorbArgs<'_, Self>>) -> Result<()> {
        Err(unbuilt("mla"))
    }
    fn up_project(&self, _: &mut Self::Stream, _: Checked<UpProjectArgs<'_, Self>>) -> Result<()> {
        Err(unbuilt("mla"))
    }
    fn mla_plan(&self, _: &MlaSpec, _: &AttentionCapacity) -> Result<Self::MlaPlan> {
        Err(unbuilt("mla"))
    }
    fn mla_workspace(&self, _: &Self::MlaPlan) -> u64 {
        0
    }
    fn mla_update(
        &self,
        _: &mut Self::Stream,
        _: &mut Self::MlaPlan,
        _: &Checked<AttentionStep<'_>, AttentionLimits>,
    ) -> Result<()> {
        Err(unbuilt("mla"))
    }
    fn mla(&self, _: &mut Self::Stream, _: Checked<MlaArgs<'_, Self>>) -> Result<()> {
        Err(unbuilt("mla"))
    }
}
