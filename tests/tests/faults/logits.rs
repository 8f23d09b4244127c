//! Penalties, biases and masks by the oracle.

use crate::{
    device::{Exact, Queue, read, values, write},
    fault::Fault,
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    logits::{
        LogitOps, LogitsArgs, LogitsCapacity, LogitsLimits, LogitsPlan, LogitsRow, LogitsSpec, LogitsStep,
        Penalties,
    },
};
use halite_parity::oracle::logits::adjusted;

#[derive(Debug)]
pub(crate) struct Plan {
    spec: LogitsSpec,
    capacity: LogitsCapacity,
    rows: Vec<Asked>,
}

/// A row's request, kept.
#[derive(Clone, Debug)]
struct Asked {
    penalties: Penalties,
    prompt: Vec<u32>,
    output: Vec<u32>,
    bias: Vec<(u32, f32)>,
    allowed: Option<Vec<u32>>,
}

impl LogitsPlan for Plan {
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

impl Asked {
    fn row(&self) -> LogitsRow<'_> {
        let row = LogitsRow::unchanged().with_penalties(self.penalties, &self.prompt, &self.output);
        let row = row.with_bias(&self.bias);
        self.allowed.as_ref().map_or(row, |allowed| row.with_allowed(allowed))
    }
}

impl LogitOps for Exact {
    type LogitsPlan = Plan;

    fn logits_supports(&self, _: &LogitsSpec) -> Support {
        Support::Native
    }

    fn logits_plan(&self, spec: &LogitsSpec, capacity: &LogitsCapacity) -> Result<Plan> {
        spec.check()?;
        Ok(Plan { spec: spec.clone(), capacity: *capacity, rows: Vec::new() })
    }

    fn logits_update(
        &self,
        _: &mut Queue,
        plan: &mut Plan,
        step: &Checked<LogitsStep<'_>, LogitsLimits>,
    ) -> Result<()> {
        step.checked_against("logits", &plan.limits())?;
        let asked = |row: &LogitsRow<'_>| Asked {
            penalties: row.penalties,
            prompt: row.prompt.to_vec(),
            output: row.output.to_vec(),
            bias: row.bias.to_vec(),
            allowed: row.allowed.map(<[u32]>::to_vec),
        };
        let mut rows: Vec<Asked> = step.rows.iter().map(asked).collect();
        if self.has(Fault::LogitsStaleHistory) {
            rows.iter_mut().zip(&plan.rows).for_each(|(row, old)| row.output.extend(&old.output));
        }
        plan.rows = rows;
        Ok(())
    }

    fn adjust_logits(&self, _: &mut Queue, args: Checked<LogitsArgs<'_, Self>>) -> Result<()> {
        let vocabulary = args.plan.spec.vocabulary;
        let (logits, mut out) = (read(args.logits), Vec::new());
        for (row, asked) in logits.chunks_exact(vocabulary).zip(&args.plan.rows) {
            let first = if self.has(Fault::LogitsBatchVariant) { &args.plan.rows[0] } else { asked };
            out.extend(self.faulty_row(row, asked.clone(), first.penalties));
        }
        write(args.logits, out);
        Ok(())
    }
}

impl Exact {
    fn faulty_row(&self, row: &[f64], mut asked: Asked, penalties: Penalties) -> Vec<f64> {
        let (mut row, before) = (row.to_vec(), row);
        let repetition = f64::from(penalties.repetition);
        asked.penalties = penalties;
        if self.has(Fault::LogitsPromptForgotten) {
            asked.prompt.clear();
        }
        if self.has(Fault::LogitsPresenceOnPrompt) {
            asked.output.append(&mut asked.prompt);
        }
        if self.has(Fault::LogitsFrequencyOnce) {
            asked.output.sort_unstable();
            asked.output.dedup();
        }
        if self.has(Fault::LogitsRepetitionEachTime) {
            for (place, token) in asked.prompt.iter().enumerate() {
                let x = &mut row[*token as usize];
                if asked.prompt[..place].contains(token) {
                    *x = if *x > 0.0 { *x / repetition } else { *x * repetition };
                }
            }
        }
        // What the oracle will divide.
        if self.has(Fault::LogitsAlwaysDivides) {
            row.iter_mut().filter(|x| **x < 0.0).for_each(|x| *x /= repetition * repetition);
            let touched =
                |token: usize| asked.prompt.iter().chain(&asked.output).any(|&seen| seen as usize == token);
            (0..row.len()).filter(|&token| !touched(token)).for_each(|token| row[token] = before[token]);
        }
        if self.has(Fault::LogitsNoBias) {
            asked.bias.clear();
        }
        if self.has(Fault::LogitsBiasFirst) {
            for (token, bias) in asked.bias.drain(..) {
                row[token as usize] += f64::from(bias);
            }
        }
        if let Some(allowed) = &mut asked.allowed {
            if self.has(Fault::LogitsMaskHighBitFirst) {
                allowed.iter_mut().for_each(|word| *word = word.reverse_bits());
            }
            if self.has(Fault::LogitsMaskLosesLastWord) {
                let last = allowed.len() - 1;
                allowed[last] = 0;
            }
        }
        let mut out = values(adjusted(&row, &asked.row()));
        if self.has(Fault::LogitsMaskKeepsNan) && asked.allowed.is_some() {
            let kept = out.iter_mut().zip(before).filter(|(x, before)| before.is_nan() && x.is_finite());
            kept.for_each(|(x, before)| *x = *before);
        }
        out
    }
}
