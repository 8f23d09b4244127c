//! The next token of a row of logits, its distribution, log-probabilities, and verification of drafted tokens.
//!
//! A workgroup works on a row. What is kept and drawn is found without sorting (`select.wgsl`): by the sums of weights a
//! digit, most significant digit first. Weights are whole numbers, so sums are exact in any order, and a row's draw
//! depends on nothing but the row.

mod log_probs;
mod parameters;
mod parts;
mod sample;
mod verify;

pub use verify::WgpuVerifyPlan;

use self::{parameters::ROW_WORDS, parts::Parts};
use crate::{device::Wgpu, stream::WgpuStream, table::Table};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    sampling::{
        LogProbArgs, ProbabilityArgs, Sampling, SamplingArgs, SamplingLimits, SamplingPlan, SamplingSpec,
        SamplingStep, VerifyArgs, VerifyCapacity, VerifyLimits, VerifyStep,
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

/// Weights are whole numbers of 2^-bits: as many as a 64-bit sum of a vocabulary of them has room for.
fn weight_bits(vocabulary: usize) -> u32 {
    (63 - vocabulary.max(1).next_power_of_two().trailing_zeros()).min(44)
}

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
        step.params.iter().for_each(|params| words.extend(parameters::row(params, None)));
        plan.rows = 0;
        plan.table.upload(stream)?;
        plan.drawn = step.params.iter().any(parameters::is_drawn);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_weights_have_room() {
        for vocabulary in [1, 2, 3, 50_257, 151_936, 262_144, MAX_VOCABULARY - 1, MAX_VOCABULARY] {
            let bits = weight_bits(vocabulary);
            assert!((vocabulary as u128) << bits <= 1 << 63, "{vocabulary}: {bits} bits");
            assert!((42..=44).contains(&bits), "{vocabulary}: {bits} bits");
        }
    }
}
