//! Log-probabilities of given tokens, the highest of each row, and those of all tokens.

use super::mass::{Mass, MassOf};
use crate::{
    device::Cpu,
    top_k::{Best, Select},
    view::{Writer, read, write},
};
use halite_hal::{Element, Result};
use halite_kernels::{
    Checked,
    sampling::{LogProbArgs, TopLogProbs},
    top_k::TopKOrder,
};
use std::slice::ChunksMut;

/// Natural log-probabilities of one row.
struct LogProbs {
    max: f64,
    log_sum: f64,
}

impl LogProbs {
    fn of(&self, logit: f32) -> f32 {
        (f64::from(logit) - self.max - self.log_sum) as f32
    }
}

/// The rows of an output, one after another; rows of nothing where it is not wanted or has no columns.
struct RowsOf<'a, T> {
    rows: Option<ChunksMut<'a, T>>,
    columns: usize,
}

impl<'a, T: Element> RowsOf<'a, T> {
    fn new(output: Option<&'a mut Writer<'_, T>>) -> Self {
        let layout = output.as_ref().map(|output| output.rows);
        let rows = output.zip(layout).map(|(output, layout)| output.data().chunks_mut(layout.outer_stride));
        RowsOf { rows, columns: layout.map_or(0, |layout| layout.columns) }
    }

    fn next(&mut self) -> &'a mut [T] {
        let row = self.rows.as_mut().and_then(Iterator::next);
        row.and_then(|row| row.get_mut(..self.columns)).unwrap_or_default()
    }
}

impl Cpu {
    pub(super) fn log_probs_of(&self, args: Checked<LogProbArgs<'_, Self>>) -> Result<()> {
        let (logits, targets) = (read::<f32>(args.logits)?, read::<i32>(args.targets)?);
        let mut out = write::<f32>(args.out)?;
        let (rows, data) = (logits.rows, logits.data());
        let (mut ids, mut top) = match &args.top {
            Some(TopLogProbs { ids, log_probs, .. }) => (Some(write::<i32>(ids)?), Some(write(log_probs)?)),
            None => (None, None),
        };
        let mut all = args.all.map(write::<f32>).transpose()?;
        let mut ids = RowsOf::new(ids.as_mut());
        let (mut top, mut all) = (RowsOf::new(top.as_mut()), RowsOf::new(all.as_mut()));
        let each = out.data().iter_mut().zip(targets.data()).enumerate();
        let each = each.map(|(row, (out, &target))| (row, out, target, ids.next(), top.next(), all.next()));
        self.team().each(each, |(row, out, target, ids, top, all)| {
            let logits: &[f32] = rows.row(data, row);
            let Mass { max, sum, .. } = self.tier().run(MassOf { logits, factor: 1.0 });
            // A row without weights: infinity less infinity.
            let sum = if max.is_finite() { sum } else { f64::NAN };
            let log_probs = LogProbs { max: f64::from(max), log_sum: sum.ln() };
            let logit = usize::try_from(target).ok().and_then(|target| logits.get(target));
            *out = logit.map_or(f32::NAN, |&logit| log_probs.of(logit));
            // No columns of the highest are the same as none wanted.
            if !ids.is_empty() {
                let best = Best { values: &mut *top, ids, order: TopKOrder::Largest };
                self.tier().run(Select { x: logits, best });
                top.iter_mut().for_each(|value| *value = log_probs.of(*value));
            }
            all.iter_mut().zip(logits).for_each(|(all, &logit)| *all = log_probs.of(logit));
        });
        Ok(())
    }
}
