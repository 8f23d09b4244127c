//! Rotary embedding, by CANN's ApplyRotaryPosEmb.
//!
//! `plan` has a step's cosines and sines as the operator reads them; `call` turns heads, and turns them on their way to the cache.

mod call;
mod plan;

use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    rope::{CosSin, PositionLimits, Positions, Rope, RopeArgs, RopeSpec, RopeStyle, RopeWriteArgs},
};

use crate::{
    device::Ascend,
    runtime::Operator,
    stream::AscendStream,
    support::{by, is_float},
};

pub use plan::AscendRopePlan;

/// Elements of a head that the operator turns.
const WIDTHS: [usize; 2] = [64, 128];

/// What it is made of.
const FORM: &str = "ApplyRotaryPosEmb in F32, with Cast and InplaceCopy";

impl Rope for Ascend {
    type RopePlan = AscendRopePlan;

    fn rope_supports(&self, spec: &RopeSpec) -> Support {
        if spec.style != RopeStyle::HalfSplit {
            return Support::No(format!("{:?}: only halves", spec.style));
        }
        if !WIDTHS.contains(&spec.rotary_dim) {
            return Support::No(format!("{} elements that turn: only 64 and 128", spec.rotary_dim));
        }
        if !is_float(spec.dtype) {
            return Support::No(format!("{} is not a floating-point type", spec.dtype));
        }
        match by(self, &[Operator::ApplyRotaryPosEmb, Operator::Cast, Operator::InplaceCopy]) {
            Support::Native => Support::Composed(FORM),
            no => no,
        }
    }

    fn rope_plan(&self, spec: &RopeSpec, max_tokens: usize) -> Result<AscendRopePlan> {
        spec.check()?;
        self.rope_supports(spec).require("rope", self, spec)?;
        AscendRopePlan::new(self, spec, max_tokens)
    }

    fn rope_update(
        &self,
        stream: &mut AscendStream,
        plan: &mut AscendRopePlan,
        positions: &Checked<Positions<'_>, PositionLimits>,
    ) -> Result<()> {
        plan.update(stream, positions)
    }

    fn rope_update_cos_sin(
        &self,
        stream: &mut AscendStream,
        plan: &mut AscendRopePlan,
        tables: &Checked<CosSin<'_>, PositionLimits>,
    ) -> Result<()> {
        plan.update_cos_sin(stream, tables)
    }

    fn rope(&self, stream: &mut AscendStream, args: Checked<RopeArgs<'_, Self>>) -> Result<()> {
        call::turn(stream, &args)
    }

    fn rope_cache_write(
        &self,
        stream: &mut AscendStream,
        args: Checked<RopeWriteArgs<'_, Self>>,
    ) -> Result<()> {
        call::turn_and_write(stream, &args)
    }
}
