//! Low-rank adapters: not here yet. Whatever is asked of it is refused by name.

use crate::{
    device::Cuda,
    stream::CudaStream,
    support::{not_yet, unsupported},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    linear::{Lora, LoraAdapter, LoraArgs, LoraLimits, LoraPlan, LoraSpec, LoraStep},
};

/// A plan of adapters; there is none yet.
#[derive(Clone, Debug)]
pub enum CudaLoraPlan {}

impl LoraPlan for CudaLoraPlan {
    fn spec(&self) -> &LoraSpec {
        match *self {}
    }

    fn max_rows(&self) -> usize {
        match *self {}
    }

    fn rows(&self) -> usize {
        match *self {}
    }

    fn last_adapter(&self) -> Option<usize> {
        match *self {}
    }
}

impl Lora for Cuda {
    type LoraPlan = CudaLoraPlan;

    fn lora_supports(&self, _: &LoraSpec) -> Support {
        not_yet("lora")
    }

    fn lora_plan(&self, spec: &LoraSpec, _max_rows: usize) -> Result<CudaLoraPlan> {
        Err(unsupported("lora", "it", spec))
    }

    fn lora_update(
        &self,
        _: &mut CudaStream,
        plan: &mut CudaLoraPlan,
        _: &Checked<LoraStep<'_>, LoraLimits>,
    ) -> Result<()> {
        match *plan {}
    }

    fn lora_workspace(&self, plan: &CudaLoraPlan, _: &[Option<LoraAdapter<'_, Self>>]) -> u64 {
        match *plan {}
    }

    fn lora(&self, _: &mut CudaStream, args: Checked<LoraArgs<'_, Self>>) -> Result<()> {
        match *args.plan {}
    }
}
