//! Multi-head latent attention: not here yet. Whatever is asked of it is refused by name.

use crate::{
    device::Cuda,
    stream::CudaStream,
    support::{not_yet, unsupported},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    attention::{AttentionCapacity, AttentionLimits, AttentionPlan, AttentionSpec, AttentionStep},
    mla::{AbsorbArgs, LatentAttention, MlaArgs, MlaPlan, MlaSpec, MlaWeights, UpProjectArgs},
};

/// Packed weights; there is none yet.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CudaMlaPacked {}

impl AsRef<MlaSpec> for CudaMlaPacked {
    fn as_ref(&self) -> &MlaSpec {
        match *self {}
    }
}

/// A plan of latent attention; there is none yet.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CudaMlaPlan {}

impl AttentionPlan for CudaMlaPlan {
    fn spec(&self) -> &AttentionSpec {
        match *self {}
    }

    fn capacity(&self) -> &AttentionCapacity {
        match *self {}
    }

    fn tokens(&self) -> usize {
        match *self {}
    }
}

impl MlaPlan for CudaMlaPlan {
    fn mla(&self) -> &MlaSpec {
        match *self {}
    }
}

impl LatentAttention for Cuda {
    type MlaPacked = CudaMlaPacked;
    type MlaPlan = CudaMlaPlan;

    fn mla_supports(&self, _: &MlaSpec) -> Support {
        not_yet("mla")
    }

    fn mla_pack(
        &self,
        _: &mut CudaStream,
        weights: Checked<MlaWeights<'_>, &MlaSpec>,
    ) -> Result<CudaMlaPacked> {
        Err(unsupported("mla", "it", weights.context()))
    }

    fn mla_save(&self, _: &mut CudaStream, packed: &CudaMlaPacked) -> Result<Vec<u8>> {
        match *packed {}
    }

    fn mla_restore(&self, _: &mut CudaStream, spec: &MlaSpec, _: &[u8]) -> Result<CudaMlaPacked> {
        spec.check()?;
        Err(unsupported("mla", "it", spec))
    }

    fn absorb(&self, _: &mut CudaStream, args: Checked<AbsorbArgs<'_, Self>>) -> Result<()> {
        match *args.weights {}
    }

    fn up_project(&self, _: &mut CudaStream, args: Checked<UpProjectArgs<'_, Self>>) -> Result<()> {
        match *args.weights {}
    }

    fn mla_plan(&self, spec: &MlaSpec, _: &AttentionCapacity) -> Result<CudaMlaPlan> {
        spec.check()?;
        Err(unsupported("mla", "it", spec))
    }

    fn mla_workspace(&self, plan: &CudaMlaPlan) -> u64 {
        match *plan {}
    }

    fn mla_update(
        &self,
        _: &mut CudaStream,
        plan: &mut CudaMlaPlan,
        _: &Checked<AttentionStep<'_>, AttentionLimits>,
    ) -> Result<()> {
        match *plan {}
    }

    fn mla(&self, _: &mut CudaStream, args: Checked<MlaArgs<'_, Self>>) -> Result<()> {
        match *args.plan {}
    }
}
