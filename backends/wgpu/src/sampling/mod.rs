//! The next token of a row of logits, its distribution, log-probabilities, and verification of drafted tokens.
//!
//! A workgroup works on a row. What is kept and drawn is found without sorting (`select.wgsl`): by the sums of weights a
//! digit, most significant digit first. Weights are whole numbers, so sums are exact in any order, and a row's draw
//! depends on nothing but the row.

mod log_probs;
mod parts;
mod sample;
mod verify;

pub use verify::WgpuVerifyPlan;

use self::parts::Parts;
use crate::{device::Wgpu, stream::WgpuStream, table::Table};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    sampling::{
        LogProbArgs, ProbabilityArgs, ROW_WORDS, Sampling, SamplingArgs, SamplingLimits, SamplingParams,
        SamplingPlan, SamplingSpec, SamplingStep, VerifyArgs, VerifyCapacity, VerifyLimits, VerifyStep,
    },
};

/// The largest vocabulary: a workgroup goes through a row some 30 times, and software adapters end all loops of an
/// invocation after 65,535 rounds.
const MAX_VOCABULARY: usize = 1 << 21;

// WGSL that kernels are put together of.
const ROW: &str = include_str!("row.wgsl");
const WIDE: &str = include_str!("wide.wgsl");
const WEIGHTS: &str = include_str!("weights.wgsl");
const CANDIDATE: &str = include_str!("candidate.wgsl");
const SUMS: &str = include_str!("sums.wgsl");
const SELECT: &str = include_str!("select.wgsl");
const PARAMETERS: &str = include_str!("parameters.wgsl");
const KEPT: &str = include_str!("kept.wgsl");

fn require(device: &Wgpu, spec: &SamplingSpec) -> Result<()> {
    spec.check()?;
    device.sampling_supports(spec).require("sampling", device, spec)
}

/// A step's parameters on the device.
#[derive(Debug)]
pub struct WgpuSamplingPlan {
    spec: SamplingSpec,
    max_rows: usize,
    rows: usize,
    /// Whether any row is drawn from.
    drawn: bool,
    table: Table,
    parts: Parts,
}

impl SamplingPlan for WgpuSamplingPlan {
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

impl Sampling for Wgpu {
    type SamplingPlan = WgpuSamplingPlan;
    type VerifyPlan = WgpuVerifyPlan;

    fn sampling_supports(&self, spec: &SamplingSpec) -> Support {
        if spec.vocabulary > MAX_VOCABULARY {
            return Support::No(format!("{} tokens: at most {MAX_VOCABULARY}", spec.vocabulary));
        }
        Support::Native
    }

    fn sampling_plan(&self, spec: &SamplingSpec, max_rows: usize) -> Result<WgpuSamplingPlan> {
        require(self, spec)?;
        let table = Table::new(self, "sampling", max_rows.saturating_mul(ROW_WORDS))?;
        let parts = Parts::new(self, spec.vocabulary, max_rows)?;
        Ok(WgpuSamplingPlan { spec: spec.clone(), max_rows, rows: 0, drawn: false, table, parts })
    }

    fn sampling_update(
        &self,
        stream: &mut WgpuStream,
        plan: &mut WgpuSamplingPlan,
        step: &Checked<SamplingStep<'_>, SamplingLimits>,
    ) -> Result<()> {
        step.checked_against("sampling", &plan.limits())?;
        let words = plan.table.begin();
        words.extend(step.params.iter().flat_map(|params| params.words(None)));
        plan.rows = 0;
        plan.table.upload(stream)?;
        plan.drawn = step.params.iter().any(SamplingParams::is_drawn);
        plan.rows = step.params.len();
        Ok(())
    }

    fn sample(&self, stream: &mut WgpuStream, args: Checked<SamplingArgs<'_, Self>>) -> Result<()> {
        let WgpuSamplingPlan { table, parts, drawn, .. } = args.plan;
        sample::sample(stream, &sample::Step { table, parts, drawn: *drawn, logits: args.logits }, args.ids)
    }

    fn probabilities(&self, stream: &mut WgpuStream, args: Checked<ProbabilityArgs<'_, Self>>) -> Result<()> {
        let WgpuSamplingPlan { table, parts, drawn, .. } = args.plan;
        sample::probabilities(
            stream,
            &sample::Step { table, parts, drawn: *drawn, logits: args.logits },
            args.out,
        )
    }

    fn verify_plan(&self, spec: &SamplingSpec, capacity: &VerifyCapacity) -> Result<WgpuVerifyPlan> {
        WgpuVerifyPlan::new(self, spec, capacity)
    }

    fn verify_update(
        &self,
        stream: &mut WgpuStream,
        plan: &mut WgpuVerifyPlan,
        step: &Checked<VerifyStep<'_>, VerifyLimits>,
    ) -> Result<()> {
        plan.update(stream, step)
    }

    fn verify(&self, stream: &mut WgpuStream, args: Checked<VerifyArgs<'_, Self>>) -> Result<()> {
        verify::verify(stream, &args)
    }

    fn log_probs(&self, stream: &mut WgpuStream, args: Checked<LogProbArgs<'_, Self>>) -> Result<()> {
        log_probs::log_probs(self, stream, &args)
    }
}
