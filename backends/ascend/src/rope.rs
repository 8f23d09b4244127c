//! Rotary embedding: not begun, so there are no plans.

use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    rope::{CosSin, PositionLimits, Positions, Rope, RopeArgs, RopePlan, RopeSpec, RopeWriteArgs},
};

use crate::{
    device::Ascend,
    stream::AscendStream,
    support::{not_yet, refused},
};

/// A plan; none can be made yet.
#[derive(Debug)]
#[non_exhaustive]
pub enum AscendRopePlan {}

impl RopePlan for AscendRopePlan {
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

impl Rope for Ascend {
    type RopePlan = AscendRopePlan;

    fn rope_supports(&self, _: &RopeSpec) -> Support {
        not_yet()
    }

    fn rope_plan(&self, spec: &RopeSpec, _max_tokens: usize) -> Result<AscendRopePlan> {
        refused("rope", spec)
    }

    fn rope_update(
        &self,
        _: &mut AscendStream,
        plan: &mut AscendRopePlan,
        _: &Checked<Positions<'_>, PositionLimits>,
    ) -> Result<()> {
        match *plan {}
    }

    fn rope_update_cos_sin(
        &self,
        _: &mut AscendStream,
        plan: &mut AscendRopePlan,
        _: &Checked<CosSin<'_>, PositionLimits>,
    ) -> Result<()> {
        match *plan {}
    }

    fn rope(&self, _: &mut AscendStream, args: Checked<RopeArgs<'_, Self>>) -> Result<()> {
        match *args.plan {}
    }

    fn rope_cache_write(&self, _: &mut AscendStream, args: Checked<RopeWriteArgs<'_, Self>>) -> Result<()> {
        match *args.plan {}
    }
}
