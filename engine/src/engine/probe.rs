//! Requests that are computed for what is inside them: log-probabilities and logits at given positions.

use crate::runner::StepBatch;
use std::ops::Range;

/// What is read from the rows of a sequence as they are computed.
pub(super) enum Probe {
    /// The log-probability of each next token.
    LogProbs {
        /// `targets[p]` comes after position `p`.
        targets: Vec<u32>,
        /// `[targets]`; `None` where not computed yet.
        found: Vec<Option<f32>>,
    },
    /// The logits at some positions, which ascend.
    Logits {
        /// Where.
        positions: Vec<usize>,
        /// `[positions]`; empty where not computed yet.
        found: Vec<Vec<f32>>,
    },
}

impl Probe {
    pub(super) fn log_probs(targets: Vec<u32>) -> Self {
        Self::LogProbs { found: vec![None; targets.len()], targets }
    }

    pub(super) fn logits(positions: Vec<usize>) -> Self {
        Self::Logits { found: vec![Vec::new(); positions.len()], positions }
    }

    /// Asks for what the rows of positions `range` are to give.
    pub(super) fn ask(&self, range: &Range<usize>, rows: &Range<usize>, batch: &mut StepBatch) {
        match self {
            Self::LogProbs { targets, .. } => {
                let targets = range.clone().filter_map(|position| targets.get(position));
                batch.log_probs.extend(rows.clone().zip(targets.copied()));
            }
            Self::Logits { positions, .. } => {
                let inside = positions.iter().filter(|position| range.contains(position));
                batch.logits.extend(inside.map(|position| rows.start + position - range.start));
            }
        }
    }

    /// Takes what was asked for with the same `range`, from the front of what the step gave.
    pub(super) fn record<'a>(
        &mut self,
        range: &Range<usize>,
        log_probs: &mut impl Iterator<Item = f32>,
        logits: &mut impl Iterator<Item = &'a [f32]>,
    ) {
        match self {
            Self::LogProbs { found, .. } => {
                let end = range.end.min(found.len());
                let slots = found.get_mut(range.start.min(end)..end).unwrap_or_default();
                slots.iter_mut().for_each(|slot| *slot = log_probs.next());
            }
            Self::Logits { positions, found } => {
                for (slot, _) in found.iter_mut().zip(positions).filter(|(_, p)| range.contains(*p)) {
                    *slot = logits.next().unwrap_or_default().to_vec();
                }
            }
        }
    }
}
