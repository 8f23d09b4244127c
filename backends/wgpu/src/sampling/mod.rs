//! Not built yet.

use crate::{
    device::Wgpu,
    unbuilt::{REASON, Unbuilt, unbuilt},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support, sampling::LogProbArgs, sampling::ProbabilityArgs, sampling::Sampling,
    sampling::SamplingArgs, sampling::SamplingLimits, sampling::SamplingSpec, sampling::SamplingStep,
    sampling::VerifyArgs, sampling::VerifyCapacity, sampling::VerifyLimits, sampling::VerifyStep,
};

impl Sampling for Wgpu {
    type SamplingPlan = Unbuilt;
    type VerifyPlan = Unbuilt;
    fn sampling_supports(&self, _: &SamplingSpec) -> Support {
        Support::No(REASON.to_owned())
    }
    fn sampling_plan(&self, _: &SamplingSpec, _: usize) -> Result<Self::SamplingPlan> {
        Err(unbuilt("sampling"))
    }
    fn sampling_update(
        &self,
        _: &mut Self::Stream,
        _: &mut Self::SamplingPlan,
        _: &Checked<SamplingStep<'_>, SamplingLimits>,
    ) -> Result<()> {
        Err(unbuilt("sampling"))
    }
    fn sample(&self, _: &mut Self::Stream, _: Checked<SamplingArgs<'_, Self>>) -> Result<()> {
        Err(unbuilt("sampling"))
    }
    fn probabilities(&self, _: &mut Self::Stream, _: Checked<ProbabilityArgs<'_, Self>>) -> Result<()> {
        Err(unbuilt("sampling"))
    }
    fn verify_plan(&self, _: &SamplingSpec, _: &VerifyCapacity) -> Result<Self::VerifyPlan> {
        Err(unbuilt("sampling"))
    }
    fn verify_update(
        &self,
        _: &mut Self::Stream,
        _: &mut Self::VerifyPlan,
        _: &Checked<VerifyStep<'_>, VerifyLimits>,
    ) -> Result<()> {
        Err(unbuilt("sampling"))
    }
    fn verify(&self, _: &mut Self::Stream, _: Checked<VerifyArgs<'_, Self>>) -> Result<()> {
        Err(unbuilt("sampling"))
    }
    fn log_probs(&self, _: &mut Self::Stream, _: Checked<LogProbArgs<'_, Self>>) -> Result<()> {
        Err(unbuilt("sampling"))
    }
}
