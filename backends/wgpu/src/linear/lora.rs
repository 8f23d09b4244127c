//! Not built yet.

use crate::{
    device::Wgpu,
    unbuilt::{REASON, Unbuilt, unbuilt},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support, linear::Lora, linear::LoraAdapter, linear::LoraArgs, linear::LoraLimits,
    linear::LoraSpec, linear::LoraStep,
};

impl Lora for Wgpu {
    type LoraPlan = Unbuilt;
    fn lora_supports(&self, _: &LoraSpec) -> Support {
        Support::No(REASON.to_owned())
    }
    fn lora_plan(&self, _: &LoraSpec, _: usize) -> Result<Self::LoraPlan> {
        Err(unbuilt("linear"))
    }
    fn lora_update(
        &self,
        _: &mut Self::Stream,
        _: &mut Self::LoraPlan,
        _: &Checked<LoraStep<'_>, LoraLimits>,
    ) -> Result<()> {
        Err(unbuilt("linear"))
    }
    fn lora_workspace(&self, _: &Self::LoraPlan, _: &[Option<LoraAdapter<'_, Self>>]) -> u64 {
        0
    }
    fn lora(&self, _: &mut Self::Stream, _: Checked<LoraArgs<'_, Self>>) -> Result<()> {
        Err(unbuilt("linear"))
    }
}
