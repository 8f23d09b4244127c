//! The next token of a row of logits, its distribution, log-probabilities, and verification of drafted tokens.
//!
//! A block works on a row. What is kept and drawn is found without sorting (`select.cuh`): by the sums of weights a digit,
//! most significant digit first. Weights are whole numbers, so sums are exact in any order, and a row's draw depends on
//! nothing but the row.

mod log_probs;
mod sample;
mod verify;

pub use verify::CudaVerifyPlan;

use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    sampling::{
        LogProbArgs, ProbabilityArgs, ROW_WORDS, Sampling, SamplingArgs, SamplingLimits, SamplingPlan,
        SamplingSpec, SamplingStep, VerifyArgs, VerifyCapacity, VerifyLimits, VerifyStep, weight_bits,
    },
};

use crate::{compile::Program, device::Cuda, launch::Launch, stream::CudaStream, table::Table};

/// What the kernels are told of the weights: their bits, and what one of them is worth.
fn weights(launch: Launch, vocabulary: usize) -> Launch {
    let bits = weight_bits(vocabulary) as i32;
    launch.int(bits).float(2f32.powi(-bits))
}

/// Every program of the family.
pub(crate) fn programs() -> Vec<Program> {
    [log_probs::programs(), sample::programs(), verify::programs()].concat()
}

fn require(device: &Cuda, spec: &SamplingSpec) -> Result<()> {
    spec.check()?;
    device.sampling_supports(spec).require("sampling", device, spec)
}

/// A step's parameters on the device.
#[derive(Debug)]
pub struct CudaSamplingPlan {
    spec: SamplingSpec,
    max_rows: usize,
    rows: usize,
    table: Table,
}

impl SamplingPlan for CudaSamplingPlan {
    fn spec(&self) -> &SamplingSpec {
        &self.spec
    }

    fn max_rows(&self) -> usize {
        self.max_rows
    }

    fn rows(&self) -> usize {
        self.rows
    }
}

impl Sampling for Cuda {
    type SamplingPlan = CudaSamplingPlan;
    type VerifyPlan = CudaVerifyPlan;

    fn sampling_supports(&self, _: &SamplingSpec) -> Support {
        Support::Native
    }

    fn sampling_plan(&self, spec: &SamplingSpec, max_rows: usize) -> Result<CudaSamplingPlan> {
        require(self, spec)?;
        let table = Table::new(self, max_rows.saturating_mul(ROW_WORDS))?;
        Ok(CudaSamplingPlan { spec: spec.clone(), max_rows, rows: 0, table })
    }

    fn sampling_update(
        &self,
        stream: &mut CudaStream,
        plan: &mut CudaSamplingPlan,
        step: &Checked<SamplingStep<'_>, SamplingLimits>,
    ) -> Result<()> {
        step.checked_against("sampling", &plan.limits())?;
        let words = plan.table.begin();
        words.extend(step.params.iter().flat_map(|params| params.words(None)));
        plan.rows = 0;
        plan.table.upload(stream)?;
        plan.rows = step.params.len();
        Ok(())
    }

    fn sample(&self, stream: &mut CudaStream, args: Checked<SamplingArgs<'_, Self>>) -> Result<()> {
        sample::sample(stream, &args.plan.table, args.logits, args.ids)
    }

    fn probabilities(&self, stream: &mut CudaStream, args: Checked<ProbabilityArgs<'_, Self>>) -> Result<()> {
        sample::probabilities(stream, &args.plan.table, args.logits, args.out)
    }

    fn verify_plan(&self, spec: &SamplingSpec, capacity: &VerifyCapacity) -> Result<CudaVerifyPlan> {
        CudaVerifyPlan::new(self, spec, capacity)
    }

    fn verify_update(
        &self,
        stream: &mut CudaStream,
        plan: &mut CudaVerifyPlan,
        step: &Checked<VerifyStep<'_>, VerifyLimits>,
    ) -> Result<()> {
        plan.update(stream, step)
    }

    fn verify(&self, stream: &mut CudaStream, args: Checked<VerifyArgs<'_, Self>>) -> Result<()> {
        verify::verify(stream, &args)
    }

    fn log_probs(&self, stream: &mut CudaStream, args: Checked<LogProbArgs<'_, Self>>) -> Result<()> {
        log_probs::log_probs(self, stream, &args)
    }
}
