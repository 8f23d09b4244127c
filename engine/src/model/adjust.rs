//! What requests ask of their logits, before tokens are drawn.

use super::decoder::Decoder;
use crate::Result;
use crate::runner::Adjustment;
use halite_kernels::logits::{LogitsArgs, LogitsPlan, LogitsRow, LogitsStep};
use halite_kernels::{Backend, Tensor};

/// What is asked of a row, as far as it is about tokens that may be drawn: further ids belong to rows of the output layer
/// that no token belongs to.
fn known(asked: Option<&Adjustment>, drawn: usize) -> Adjustment {
    let mut asked = asked.cloned().unwrap_or_default();
    let known = |token: u32| (token as usize) < drawn;
    asked.prompt.retain(|&token| known(token));
    asked.output.retain(|&token| known(token));
    asked.bias.retain(|&(token, _)| known(token));
    asked
}

impl<B: Backend> Decoder<B> {
    /// Changes the rows that something is asked of, as many at a time as the plan has room for.
    pub(super) fn adjust(&mut self, logits: &Tensor<B>, asked: &[Option<&Adjustment>]) -> Result<()> {
        if asked.iter().all(Option::is_none) {
            return Ok(());
        }
        let (device, stream, plan) = (&self.device, &mut self.stream, &mut self.plans.logits);
        let (drawn, room) = (plan.spec().vocabulary, *plan.capacity());
        let asked: Vec<Adjustment> = asked.iter().map(|asked| known(*asked, drawn)).collect();
        let rows: Vec<LogitsRow<'_>> = asked.iter().map(Adjustment::row).collect();
        let mut start = 0;
        while start < rows.len() {
            let (mut end, mut history, mut biases) = (start, 0, 0);
            for row in &rows[start..] {
                history += row.history();
                biases += row.bias.len();
                // One row fits by itself, or the check says why not.
                if end > start && (history > room.max_history || biases > room.max_biases) {
                    break;
                }
                end += 1;
            }
            let step = LogitsStep { rows: &rows[start..end] }.check(plan)?;
            device.logits_update(stream, plan, &step)?;
            let logits = logits.narrow(0, start..end)?;
            device.adjust_logits(stream, LogitsArgs { plan, logits: &logits }.check()?)?;
            start = end;
        }
        Ok(())
    }
}
