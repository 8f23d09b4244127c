//! Adapters of linear layers: not begun, so there are no plans.

use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    linear::{Lora, LoraAdapter, LoraArgs, LoraLimits, LoraPlan, LoraSpec, LoraStep},
};

use crate::{
    device::Ascend,
    stream::AscendStream,
    support::{not_yet, refused},
};

/// A plan; none can be made yet.
#[derive(Debug)]
#[non_exhaustive]
pub enum AscendLoraPlan {}

impl LoraPlan for AscendLoraPlan {
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

impl Lora for Ascend {
    type LoraPlan = AscendLoraPlan;

    fn lora_supports(&self, _: &LoraSpec) -> Support {
        not_yet()
    }

    fn lora_plan(&self, spec: &LoraSpec, _max_rows: usize) -> Result<AscendLoraPlan> {
        spec.check()?;
        refused("lora", spec)
    }

    fn lora_update(
        &self,
        _: &mut AscendStream,
        plan: &mut AscendLoraPlan,
        _: &Checked<LoraStep<'_>, LoraLimits>,
    ) -> Result<()> {
        match *plan {}
    }

    fn lora_workspace(&self, plan: &AscendLoraPlan, _: &[Option<LoraAdapter<'_, Self>>]) -> u64 {
        match *plan {}
    }

    fn lora(&self, _: &mut AscendStream, args: Checked<LoraArgs<'_, Self>>) -> Result<()> {
        match *args.plan {}
    }
}
