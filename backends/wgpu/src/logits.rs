//! Not built yet.

use crate::{
    device::Wgpu,
    unbuilt::{REASON, Unbuilt, unbuilt},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support, logits::LogitOps, logits::LogitsArgs, logits::LogitsCapacity, logits::LogitsLimits,
    logits::LogitsSpec, logits::LogitsStep,
};

impl LogitOps for Wgpu {
    type LogitsPlan = Unbuilt;
    fn logits_supports(&self, _: &LogitsSpec) -> Support {
        Support::No(REASON.to_owned())
    }
    fn logits_plan(&self, _: &LogitsSpec, _: &LogitsCapacity) -> Result<Self::LogitsPlan> {
        Err(unbuilt("logits"))
    }
    fn logits_update(
        &self,
        _: &mut Self::Stream,
        _: &mut Self::LogitsPlan,
        _: &Checked<LogitsStep<'_>, LogitsLimits>,
    ) -> Result<()> {
        Err(unbuilt("logits"))
    }
    fn adjust_logits(&self, _: &mut Self::Stream, _: Checked<LogitsArgs<'_, Self>>) -> Result<()> {
        Err(unbuilt("logits"))
    }
}
