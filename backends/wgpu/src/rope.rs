//! Not built yet.

use crate::{
    device::Wgpu,
    unbuilt::{REASON, Unbuilt, unbuilt},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support, rope::CosSin, rope::PositionLimits, rope::Positions, rope::Rope, rope::RopeArgs,
    rope::RopeSpec, rope::RopeWriteArgs,
};

impl Rope for Wgpu {
    type RopePlan = Unbuilt;
    fn rope_supports(&self, _: &RopeSpec) -> Support {
        Support::No(REASON.to_owned())
    }
    fn rope_plan(&self, _: &RopeSpec, _: usize) -> Result<Self::RopePlan> {
        Err(unbuilt("rope"))
    }
    fn rope_update(
        &self,
        _: &mut Self::Stream,
        _: &mut Self::RopePlan,
        _: &Checked<Positions<'_>, PositionLimits>,
    ) -> Result<()> {
        Err(unbuilt("rope"))
    }
    fn rope_update_cos_sin(
        &self,
        _: &mut Self::Stream,
        _: &mut Self::RopePlan,
        _: &Checked<CosSin<'_>, PositionLimits>,
    ) -> Result<()> {
        Err(unbuilt("rope"))
    }
    fn rope(&self, _: &mut Self::Stream, _: Checked<RopeArgs<'_, Self>>) -> Result<()> {
        Err(unbuilt("rope"))
    }
    fn rope_cache_write(&self, _: &mut Self::Stream, _: Checked<RopeWriteArgs<'_, Self>>) -> Result<()> {
        Err(unbuilt("rope"))
    }
}
