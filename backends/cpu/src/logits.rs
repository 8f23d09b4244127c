//! Penalties, biases and masks on logits, in place.

use crate::{
    device::Cpu,
    room::room_for,
    simd::{Isa, Kernel, LANES},
    stream::CpuStream,
    view::write,
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    logits::{
        LogitOps, LogitsArgs, LogitsCapacity, LogitsLimits, LogitsPlan, LogitsSpec, LogitsStep, Penalties,
        SeenToken,
    },
};
use std::ops::Range;

/// A step's requests.
#[derive(Debug)]
pub struct CpuLogitsPlan {
    spec: LogitsSpec,
    capacity: LogitsCapacity,
    rows: Vec<Request>,
    seen: Vec<SeenToken>,
    biases: Vec<(u32, f32)>,
    masks: Vec<u32>,
}

/// What is asked of one row, as places in the plan's lists.
#[derive(Debug)]
struct Request {
    penalties: Penalties,
    seen: Range<usize>,
    biases: Range<usize>,
    mask: Range<usize>,
}

impl LogitsPlan for CpuLogitsPlan {
    fn spec(&self) -> &LogitsSpec {
        &self.spec
    }

    fn capacity(&self) -> &LogitsCapacity {
        &self.capacity
    }

    fn rows(&self) -> usize {
        self.rows.len()
    }
}

impl LogitOps for Cpu {
    type LogitsPlan = CpuLogitsPlan;

    fn logits_supports(&self, _spec: &LogitsSpec) -> Support {
        Support::Native
    }

    fn logits_plan(&self, spec: &LogitsSpec, capacity: &LogitsCapacity) -> Result<CpuLogitsPlan> {
        spec.check()?;
        let mask_words = capacity.max_rows.saturating_mul(spec.mask_words());
        Ok(CpuLogitsPlan {
            spec: spec.clone(),
            capacity: *capacity,
            rows: room_for(capacity.max_rows)?,
            seen: room_for(capacity.max_history)?,
            biases: room_for(capacity.max_biases)?,
            masks: room_for(mask_words)?,
        })
    }

    fn logits_update(
        &self,
        _stream: &mut CpuStream,
        plan: &mut CpuLogitsPlan,
        step: &Checked<LogitsStep<'_>, LogitsLimits>,
    ) -> Result<()> {
        step.checked_against("logits", &plan.limits())?;
        plan.rows.clear();
        plan.seen.clear();
        plan.biases.clear();
        plan.masks.clear();
        for row in step.rows {
            let starts = (plan.seen.len(), plan.biases.len(), plan.masks.len());
            row.seen(&mut plan.seen);
            plan.biases.extend_from_slice(row.bias);
            plan.masks.extend_from_slice(row.allowed.unwrap_or_default());
            plan.rows.push(Request {
                penalties: row.penalties,
                seen: starts.0..plan.seen.len(),
                biases: starts.1..plan.biases.len(),
                mask: starts.2..plan.masks.len(),
            });
        }
        Ok(())
    }

    fn adjust_logits(&self, _stream: &mut CpuStream, args: Checked<LogitsArgs<'_, Self>>) -> Result<()> {
        let plan = args.plan;
        let mut logits = write::<f32>(args.logits)?;
        let rows = logits.rows;
        let tasks = logits.data().chunks_mut(rows.outer_stride).zip(&plan.rows);
        self.team().each(tasks, |(row, request)| {
            let row = &mut row[..rows.columns];
            let Penalties { repetition, presence, frequency, .. } = request.penalties;
            for SeenToken { token, outputs, .. } in &plan.seen[request.seen.clone()] {
                let x = &mut row[*token as usize];
                *x = if *x > 0.0 { *x / repetition } else { *x * repetition };
                if *outputs > 0 {
                    *x -= frequency * *outputs as f32;
                    *x -= presence;
                }
            }
            for (token, bias) in &plan.biases[request.biases.clone()] {
                row[*token as usize] += bias;
            }
            if !request.mask.is_empty() {
                self.tier().run(Allow { row, words: &plan.masks[request.mask.clone()] });
            }
        });
        Ok(())
    }
}

/// Minus infinity where a bit is 0; at least the least finite value where it is 1.
struct Allow<'a> {
    row: &'a mut [f32],
    words: &'a [u32],
}

impl Kernel for Allow<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let (least, forbidden) = (isa.splat(f32::MIN), isa.splat(f32::NEG_INFINITY));
        for (vector, x) in self.row.chunks_mut(LANES).enumerate() {
            // Two vectors a word; the mask takes its 16 bits.
            let allowed = (self.words[vector / 2] >> (vector % 2 * LANES)) as u16;
            // The least comes second: it takes the place of NaN.
            let kept = isa.max(isa.load_partial(x), least);
            isa.store_partial(isa.select(allowed, kept, forbidden), x);
        }
    }
}
