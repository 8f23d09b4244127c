//! Penalties, biases and masks of logits: not here yet. Whatever is asked of it is refused by name.

use crate::{
    device::Cuda,
    stream::CudaStream,
    support::{not_yet, unsupported},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    logits::{LogitOps, LogitsArgs, LogitsCapacity, LogitsLimits, LogitsPlan, LogitsSpec, LogitsStep},
};

/// A plan of changes to logits; there is none yet.
#[derive(Clone, Debug)]
pub enum CudaLogitsPlan {}

impl LogitsPlan for CudaLogitsPlan {
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

impl LogitOps for Cuda {
    type LogitsPlan = CudaLogitsPlan;

    fn logits_supports(&self, _: &LogitsSpec) -> Support {
        not_yet("logits")
    }

    fn logits_plan(&self, spec: &LogitsSpec, _: &LogitsCapacity) -> Result<CudaLogitsPlan> {
        Err(unsupported("logits", "it", spec))
    }

    fn logits_update(
        &self,
        _: &mut CudaStream,
        plan: &mut CudaLogitsPlan,
        _: &Checked<LogitsStep<'_>, LogitsLimits>,
    ) -> Result<()> {
        match *plan {}
    }

    fn adjust_logits(&self, _: &mut CudaStream, args: Checked<LogitsArgs<'_, Self>>) -> Result<()> {
        match *args.plan {}
    }
}
