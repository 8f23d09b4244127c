//! Sampling, verification and log-probabilities: not begun, so there are no plans.

use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    sampling::{
        LogProbArgs, ProbabilityArgs, Sampling, SamplingArgs, SamplingLimits, SamplingPlan, SamplingSpec,
        SamplingStep, VerifyArgs, VerifyCapacity, VerifyLimits, VerifyPlan, VerifyStep,
    },
};

use crate::{
    device::Ascend,
    stream::AscendStream,
    support::{not_yet, refused},
};

/// A plan; none can be made yet.
#[derive(Debug)]
#[non_exhaustive]
pub enum AscendSamplingPlan {}

impl SamplingPlan for AscendSamplingPlan {
    fn spec(&self) -> &SamplingSpec {
        match *self {}
    }

    fn max_rows(&self) -> usize {
        match *self {}
    }

    fn rows(&self) -> usize {
        match *self {}
    }
}

/// A plan; none can be made yet.
#[derive(Debug)]
#[non_exhaustive]
pub enum AscendVerifyPlan {}

impl VerifyPlan for AscendVerifyPlan {
    fn spec(&self) -> &SamplingSpec {
        match *self {}
    }

    fn capacity(&self) -> &VerifyCapacity {
        match *self {}
    }

    fn requests(&self) -> usize {
        match *self {}
    }

    fn drafts(&self) -> usize {
        match *self {}
    }
}

impl Sampling for Ascend {
    type SamplingPlan = AscendSamplingPlan;
    type VerifyPlan = AscendVerifyPlan;

    fn sampling_supports(&self, _: &SamplingSpec) -> Support {
        not_yet()
    }

    fn sampling_plan(&self, spec: &SamplingSpec, _max_rows: usize) -> Result<AscendSamplingPlan> {
        refused("sampling", spec)
    }

    fn sampling_update(
        &self,
        _: &mut AscendStream,
        plan: &mut AscendSamplingPlan,
        _: &Checked<SamplingStep<'_>, SamplingLimits>,
    ) -> Result<()> {
        match *plan {}
    }

    fn sample(&self, _: &mut AscendStream, args: Checked<SamplingArgs<'_, Self>>) -> Result<()> {
        match *args.plan {}
    }

    fn probabilities(&self, _: &mut AscendStream, args: Checked<ProbabilityArgs<'_, Self>>) -> Result<()> {
        match *args.plan {}
    }

    fn verify_plan(&self, spec: &SamplingSpec, _: &VerifyCapacity) -> Result<AscendVerifyPlan> {
        refused("sampling", spec)
    }

    fn verify_update(
        &self,
        _: &mut AscendStream,
        plan: &mut AscendVerifyPlan,
        _: &Checked<VerifyStep<'_>, VerifyLimits>,
    ) -> Result<()> {
        match *plan {}
    }

    fn verify(&self, _: &mut AscendStream, args: Checked<VerifyArgs<'_, Self>>) -> Result<()> {
        match *args.plan {}
    }

    fn log_probs(&self, _: &mut AscendStream, args: Checked<LogProbArgs<'_, Self>>) -> Result<()> {
        refused("sampling", &args.logits.dtype())
    }
}
