//! Log-probabilities of given tokens, and the highest of each row.

use super::mass::{Mass, MassOf};
use crate::{
    device::Cpu,
    top_k::{Best, Select},
    view::{read, write},
};
use halite_hal::Result;
use halite_kernels::{
    Checked,
    sampling::{LogProbArgs, TopLogProbs},
    top_k::TopKOrder,
};

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

impl Cpu {
    pub(super) fn log_probs_of(&self, args: Checked<LogProbArgs<'_, Self>>) -> Result<()> {
        let (logits, targets) = (read::<f32>(args.logits)?, read::<i32>(args.targets)?);
        let mut out = write::<f32>(args.out)?;
        let (rows, data) = (logits.rows, logits.data());
        let row_of = |row| {
            let logits: &[f32] = rows.row(data, row);
            let Mass { max, sum, .. } = self.tier().run(MassOf { logits, factor: 1.0 });
            // A row without weights: infinity less infinity.
            let sum = if max.is_finite() { sum } else { f64::NAN };
            (logits, LogProbs { max: f64::from(max), log_sum: sum.ln() })
        };
        let target = |logits: &[f32], log_probs: &LogProbs, target: i32| {
            let logit = usize::try_from(target).ok().and_then(|target| logits.get(target));
            logit.map_or(f32::NAN, |&logit| log_probs.of(logit))
        };
        let each = out.data().iter_mut().zip(targets.data()).enumerate();
        // No columns of the highest are the same as none wanted.
        let wanted = args.top.as_ref().filter(|TopLogProbs { ids, .. }| ids.dims().get(1) != Some(&0));
        let Some(TopLogProbs { ids, log_probs, .. }) = wanted else {
            self.team().each(each, |(row, (out, &id))| {
                let (logits, log_probs) = row_of(row);
                *out = target(logits, &log_probs, id);
            });
            return Ok(());
        };
        let (mut ids, mut top) = (write::<i32>(ids)?, write::<f32>(log_probs)?);
        let (id_rows, top_rows) = (ids.rows, top.rows);
        let highest = ids.data().chunks_mut(id_rows.outer_stride);
        let highest = highest.zip(top.data().chunks_mut(top_rows.outer_stride));
        self.team().each(each.zip(highest), |((row, (out, &id)), (ids, values))| {
            let (logits, log_probs) = row_of(row);
            *out = target(logits, &log_probs, id);
            let (ids, values) = (&mut ids[..id_rows.columns], &mut values[..top_rows.columns]);
            let best = Best { values: &mut *values, ids, order: TopKOrder::Largest };
            self.tier().run(Select { x: logits, best });
            values.iter_mut().for_each(|value| *value = log_probs.of(*value));
        });
        Ok(())
    }
}
