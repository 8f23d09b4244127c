//! Rotary position embedding: not here yet. Whatever is asked of it is refused by name.

use crate::{
    device::Cuda,
    stream::CudaStream,
    support::{not_yet, unsupported},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    rope::{CosSin, PositionLimits, Positions, Rope, RopeArgs, RopePlan, RopeSpec, RopeWriteArgs},
};

/// A plan of rotations; there is none yet.
#[derive(Clone, Debug)]
pub enum CudaRopePlan {}

impl RopePlan for CudaRopePlan {
    fn spec(&self) -> &RopeSpec {
        match *self {}
    }

    fn max_tokens(&self) -> usize {
        match *self {}
    }

    fn tokens(&self) -> usize {
        match *self {}
    }
}

impl Rope for Cuda {
    type RopePlan = CudaRopePlan;

    fn rope_supports(&self, _: &RopeSpec) -> Support {
        not_yet("rope")
    }

    fn rope_plan(&self, spec: &RopeSpec, _: usize) -> Result<CudaRopePlan> {
        Err(unsupported("rope", "it", spec))
    }

    fn rope_update(
        &self,
        _: &mut CudaStream,
        plan: &mut CudaRopePlan,
        _: &Checked<Positions<'_>, PositionLimits>,
    ) -> Result<()> {
        match *plan {}
    }

    fn rope_update_cos_sin(
        &self,
        _: &mut CudaStream,
        plan: &mut CudaRopePlan,
        _: &Checked<CosSin<'_>, PositionLimits>,
    ) -> Result<()> {
        match *plan {}
    }

    fn rope(&self, _: &mut CudaStream, args: Checked<RopeArgs<'_, Self>>) -> Result<()> {
        match *args.plan {}
    }

    fn rope_cache_write(&self, _: &mut CudaStream, args: Checked<RopeWriteArgs<'_, Self>>) -> Result<()> {
        match *args.cache {}
    }
}
