//! The next token of a row of logits, its distribution, log-probabilities, and verification of drafted tokens.

mod candidates;
mod id_lists;
mod log_probs;
mod mass;
mod probabilities;
mod verify;

pub use verify::CpuVerifyPlan;

use self::id_lists::IdLists;
use crate::{
    device::Cpu,
    room::room_for,
    stream::CpuStream,
    view::{read, write},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    sampling::{
        LogProbArgs, ProbabilityArgs, Sampling, SamplingArgs, SamplingLimits, SamplingParams, SamplingPlan,
        SamplingSpec, SamplingStep, VerifyArgs, VerifyCapacity, VerifyLimits, VerifyStep,
    },
};

/// A step's parameters, and where its rows are ranked.
#[derive(Debug)]
pub struct CpuSamplingPlan {
    spec: SamplingSpec,
    max_rows: usize,
    params: Vec<SamplingParams>,
    lists: IdLists,
}

impl SamplingPlan for CpuSamplingPlan {
    fn spec(&self) -> &SamplingSpec {
        &self.spec
    }

    fn max_rows(&self) -> usize {
        self.max_rows
    }

    fn rows(&self) -> usize {
        self.params.len()
    }
}

impl Sampling for Cpu {
    type SamplingPlan = CpuSamplingPlan;
    type VerifyPlan = CpuVerifyPlan;

    fn sampling_supports(&self, _spec: &SamplingSpec) -> Support {
        Support::Native
    }

    fn sampling_plan(&self, spec: &SamplingSpec, max_rows: usize) -> Result<CpuSamplingPlan> {
        spec.check()?;
        let lists = IdLists::new(spec.vocabulary, self.threads(), max_rows)?;
        Ok(CpuSamplingPlan { spec: spec.clone(), max_rows, params: room_for(max_rows)?, lists })
    }

    fn sampling_update(
        &self,
        _stream: &mut CpuStream,
        plan: &mut CpuSamplingPlan,
        step: &Checked<SamplingStep<'_>, SamplingLimits>,
    ) -> Result<()> {
        step.checked_against("sampling", &plan.limits())?;
        plan.params.clear();
        plan.params.extend_from_slice(step.params);
        Ok(())
    }

    fn sample(&self, _stream: &mut CpuStream, args: Checked<SamplingArgs<'_, Self>>) -> Result<()> {
        let (logits, mut ids) = (read::<f32>(args.logits)?, write::<i32>(args.ids)?);
        let (rows, data) = (logits.rows, logits.data());
        self.team().each(ids.data().iter_mut().zip(&args.plan.params).enumerate(), |(row, (id, params))| {
            let logits = rows.row(data, row);
            *id = args.plan.lists.lend(|ids| self.candidates(logits, params, ids).draw(params)) as i32;
        });
        Ok(())
    }

    fn probabilities(&self, _stream: &mut CpuStream, args: Checked<ProbabilityArgs<'_, Self>>) -> Result<()> {
        self.probabilities_of(args)
    }

    fn verify_plan(&self, spec: &SamplingSpec, capacity: &VerifyCapacity) -> Result<CpuVerifyPlan> {
        CpuVerifyPlan::new(spec, capacity, self.threads())
    }

    fn verify_update(
        &self,
        _stream: &mut CpuStream,
        plan: &mut CpuVerifyPlan,
        step: &Checked<VerifyStep<'_>, VerifyLimits>,
    ) -> Result<()> {
        plan.update(step)
    }

    fn verify(&self, _stream: &mut CpuStream, args: Checked<VerifyArgs<'_, Self>>) -> Result<()> {
        self.verify_drafts(args)
    }

    fn log_probs(&self, _stream: &mut CpuStream, args: Checked<LogProbArgs<'_, Self>>) -> Result<()> {
        self.log_probs_of(args)
    }
}
