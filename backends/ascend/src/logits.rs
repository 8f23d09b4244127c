//! What requests ask of their logits: not begun, so there are no plans.

use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    logits::{LogitOps, LogitsArgs, LogitsCapacity, LogitsLimits, LogitsPlan, LogitsSpec, LogitsStep},
};

use crate::{
    device::Ascend,
    stream::AscendStream,
    support::{not_yet, refused},
};

/// A plan; none can be made yet.
#[derive(Debug)]
#[non_exhaustive]
pub enum AscendLogitsPlan {}

impl LogitsPlan for AscendLogitsPlan {
    fn spec(&self) -> &LogitsSpec {
        match *self {}
    }

    fn capacity(&self) -> &LogitsCapacity {
        match *self {}
    }

    fn rows(&self) -> usize {
        match *self {}
    }
}

impl LogitOps for Ascend {
    type LogitsPlan = AscendLogitsPlan;

    fn logits_supports(&self, _: &LogitsSpec) -> Support {
        not_yet()
    }

    fn logits_plan(&self, spec: &LogitsSpec, _: &LogitsCapacity) -> Result<AscendLogitsPlan> {
        refused("logits", spec)
    }

    fn logits_update(
        &self,
        _: &mut AscendStream,
        plan: &mut AscendLogitsPlan,
        _: &Checked<LogitsStep<'_>, LogitsLimits>,
    ) -> Result<()> {
        match *plan {}
    }

    fn adjust_logits(&self, _: &mut AscendStream, args: Checked<LogitsArgs<'_, Self>>) -> Result<()> {
        match *args.plan {}
    }
}
