//! Penalties, biases and masks on logits, in place.

use std::iter::Peekable;

use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    logits::{
        LogitOps, LogitsArgs, LogitsCapacity, LogitsLimits, LogitsPlan, LogitsRow, LogitsSpec, LogitsStep,
        SeenToken,
    },
};

use crate::{
    compile::{Program, Source},
    device::Cuda,
    launch::Launch,
    rows::Rows,
    stream::CudaStream,
    table::Table,
};

static SOURCE: Source = Source::new("logits/logits.cu", include_str!("logits.cu"));

/// Threads of a block.
const THREADS: usize = 256;
/// Words of a touched token in the table: row, token, what is done to it, bias.
const TOUCHED: usize = 4;
/// Words of a row's penalties in the table.
const PENALTIES: usize = 3;
/// Of the third word of a touched token: it has a penalty, it has a bias; above both, how often it is in the output.
const SEEN: u32 = 1;
const BIASED: u32 = 2;
const OUTPUTS_SHIFT: u32 = 2;

fn base(entry: &'static str) -> Launch {
    Launch::new("logits", &SOURCE, entry)
}

/// Every program of the family: one, with both kernels.
pub(crate) fn programs() -> Vec<Program> {
    vec![base("touch").program()]
}

/// A step's requests on the device.
///
/// The table holds the penalties of each row, then the touched tokens of all rows, then the number of each masked row,
/// then their masks.
#[derive(Debug)]
pub struct CudaLogitsPlan {
    spec: LogitsSpec,
    capacity: LogitsCapacity,
    rows: usize,
    touched: usize,
    masked: usize,
    table: Table,
    seen: Vec<SeenToken>,
}

impl CudaLogitsPlan {
    fn touched_start(&self) -> usize {
        self.rows * PENALTIES
    }

    fn masked_start(&self) -> usize {
        self.touched_start() + self.touched * TOUCHED
    }

    fn masks_start(&self) -> usize {
        self.masked_start() + self.masked
    }
}

impl LogitsPlan for CudaLogitsPlan {
    fn spec(&self) -> &LogitsSpec {
        &self.spec
    }

    fn capacity(&self) -> &LogitsCapacity {
        &self.capacity
    }

    fn rows(&self) -> usize {
        self.rows
    }
}

/// One token of a row, once, with all that is done to it: `[token, what, bias]`.
struct Touched<S: Iterator, B: Iterator> {
    seen: Peekable<S>,
    bias: Peekable<B>,
}

impl<S, B> Iterator for Touched<S, B>
where
    S: Iterator<Item = SeenToken>,
    B: Iterator<Item = (u32, f32)>,
{
    type Item = [u32; 3];

    fn next(&mut self) -> Option<[u32; 3]> {
        // Both lists ascend.
        let tokens = [self.seen.peek().map(|seen| seen.token), self.bias.peek().map(|bias| bias.0)];
        let token = tokens.into_iter().flatten().min()?;
        let seen = self.seen.next_if(|seen| seen.token == token);
        let bias = self.bias.next_if(|bias| bias.0 == token);
        let what = seen.map_or(0, |seen| SEEN | seen.outputs << OUTPUTS_SHIFT) | bias.map_or(0, |_| BIASED);
        Some([token, what, bias.map_or(0, |bias| bias.1.to_bits())])
    }
}

fn touched(seen: &[SeenToken], row: &LogitsRow<'_>) -> impl Iterator<Item = [u32; 3]> {
    Touched { seen: seen.iter().copied().peekable(), bias: row.bias.iter().copied().peekable() }
}

impl LogitOps for Cuda {
    type LogitsPlan = CudaLogitsPlan;

    fn logits_supports(&self, _spec: &LogitsSpec) -> Support {
        Support::Native
    }

    fn logits_plan(&self, spec: &LogitsSpec, capacity: &LogitsCapacity) -> Result<CudaLogitsPlan> {
        spec.check()?;
        let LogitsCapacity { max_rows, max_history, max_biases, .. } = *capacity;
        let touched = max_history.saturating_add(max_biases).saturating_mul(TOUCHED);
        let row = PENALTIES + 1 + spec.mask_words();
        let words = max_rows.saturating_mul(row).saturating_add(touched);
        let table = Table::new(self, words)?;
        let (spec, capacity) = (spec.clone(), *capacity);
        Ok(CudaLogitsPlan { spec, capacity, rows: 0, touched: 0, masked: 0, table, seen: Vec::new() })
    }

    fn logits_update(
        &self,
        stream: &mut CudaStream,
        plan: &mut CudaLogitsPlan,
        step: &Checked<LogitsStep<'_>, LogitsLimits>,
    ) -> Result<()> {
        step.checked_against("logits", &plan.limits())?;
        let CudaLogitsPlan { table, seen, .. } = plan;
        let words = table.begin();
        for row in step.rows {
            let penalties = row.penalties;
            let numbers = [penalties.repetition, penalties.presence, penalties.frequency];
            words.extend(numbers.map(f32::to_bits));
        }
        let start = words.len();
        for (number, row) in step.rows.iter().enumerate() {
            seen.clear();
            row.seen(seen);
            for [token, what, bias] in touched(seen, row) {
                words.extend([number as u32, token, what, bias]);
            }
        }
        let touched = (words.len() - start) / TOUCHED;
        let masks = || step.rows.iter().enumerate().filter_map(|(row, asked)| Some((row, asked.allowed?)));
        words.extend(masks().map(|(row, _)| row as u32));
        masks().for_each(|(_, mask)| words.extend_from_slice(mask));
        (plan.rows, plan.touched, plan.masked) = (0, 0, 0);
        plan.table.upload(stream)?;
        (plan.rows, plan.touched, plan.masked) = (step.rows.len(), touched, masks().count());
        Ok(())
    }

    /// One launch over the tokens that penalties and biases touch, one over the rows that have a mask.
    fn adjust_logits(&self, stream: &mut CudaStream, args: Checked<LogitsArgs<'_, Self>>) -> Result<()> {
        let (plan, rows) = (args.plan, Rows::of(args.logits));
        let launch = |entry| {
            base(entry)
                .tensor("logits", args.logits)
                .tensor("table", plan.table.tensor())
                .size("logits' stride", rows.outer_stride)
        };
        let touch = launch("touch").size("touched", plan.touched).size("touched_start", plan.touched_start());
        stream.launch(touch.grid([plan.touched.div_ceil(THREADS), 1, 1]))?;
        let parts = rows.columns.div_ceil(THREADS);
        let mask = launch("mask")
            .size("vocabulary", rows.columns)
            .size("parts", parts)
            .size("masked_start", plan.masked_start())
            .size("masks_start", plan.masks_start())
            .size("mask_words", plan.spec.mask_words());
        stream.launch(mask.grid([plan.masked.saturating_mul(parts), 1, 1]))
    }
}

#[cfg(test)]
mod tests {
    use halite_kernels::logits::Penalties;

    use super::*;

    #[test]
    fn a_token_comes_once_with_its_penalty_and_its_bias() {
        let penalties = Penalties::NONE.with_repetition(2.0);
        let bias = [(1, 0.5), (7, -1.0)];
        let row = LogitsRow::unchanged().with_penalties(penalties, &[7, 3], &[9, 7, 7]).with_bias(&bias);
        let mut seen = Vec::new();
        row.seen(&mut seen);
        let got: Vec<_> = touched(&seen, &row).collect();
        let (half, less) = (0.5f32.to_bits(), (-1.0f32).to_bits());
        assert_eq!(got, [[1, 2, half], [3, 1, 0], [7, 1 | 2 | 2 << 2, less], [9, 1 | 1 << 2, 0]]);
        assert_eq!(touched(&[], &LogitsRow::unchanged()).count(), 0);
    }
}
