//! Sampling: not here yet. Whatever is asked of it is refused by name.

use crate::{
    device::Cuda,
    stream::CudaStream,
    support::{not_yet, unsupported},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    sampling::{
        LogProbArgs, ProbabilityArgs, Sampling, SamplingArgs, SamplingLimits, SamplingPlan, SamplingSpec,
        SamplingStep, VerifyArgs, VerifyCapacity, VerifyLimits, VerifyPlan, VerifyStep,
    },
};

/// A plan of sampling; there is none yet.
#[derive(Clone, Debug)]
pub enum CudaSamplingPlan {}

impl SamplingPlan for CudaSamplingPlan {
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

/// A plan of verification; there is none yet.
#[derive(Clone, Debug)]
pub enum CudaVerifyPlan {}

impl VerifyPlan for CudaVerifyPlan {
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

impl Sampling for Cuda {
    type SamplingPlan = CudaSamplingPlan;
    type VerifyPlan = CudaVerifyPlan;

    fn sampling_supports(&self, _: &SamplingSpec) -> Support {
        not_yet("sampling")
    }

    fn sampling_plan(&self, spec: &SamplingSpec, _: usize) -> Result<CudaSamplingPlan> {
        Err(unsupported("sampling", "it", spec))
    }

    fn sampling_update(
        &self,
        _: &mut CudaStream,
        plan: &mut CudaSamplingPlan,
        _: &Checked<SamplingStep<'_>, SamplingLimits>,
    ) -> Result<()> {
        match *plan {}
    }

    fn sample(&self, _: &mut CudaStream, args: Checked<SamplingArgs<'_, Self>>) -> Result<()> {
        match *args.plan {}
    }

    fn probabilities(&self, _: &mut CudaStream, args: Checked<ProbabilityArgs<'_, Self>>) -> Result<()> {
        match *args.plan {}
    }

    fn verify_plan(&self, spec: &SamplingSpec, _: &VerifyCapacity) -> Result<CudaVerifyPlan> {
        Err(unsupported("sampling", "it", spec))
    }

    fn verify_update(
        &self,
        _: &mut CudaStream,
        plan: &mut CudaVerifyPlan,
        _: &Checked<VerifyStep<'_>, VerifyLimits>,
    ) -> Result<()> {
        match *plan {}
    }

    fn verify(&self, _: &mut CudaStream, args: Checked<VerifyArgs<'_, Self>>) -> Result<()> {
        match *args.plan {}
    }

    fn log_probs(&self, _: &mut CudaStream, args: Checked<LogProbArgs<'_, Self>>) -> Result<()> {
        Err(unsupported("sampling", "log_probs", &*args))
    }
}
