//! Log-probabilities of given tokens.

use super::{Logits, logits};
use crate::{
    case::Verdict,
    judge::judge,
    oracle,
    poison::{Guarded, LAYOUTS, Layout},
    random::Rng,
    tolerance::Bound,
};
use halite_kernels::{Backend, DType, sampling::LogProbArgs};

/// One call: a row of each kind, and a target a row.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// Columns of the logits.
    pub vocabulary: usize,
    /// What each row holds, and its target.
    pub rows: Vec<(Logits, i32)>,
    /// How the logits lie in memory.
    pub layout: Layout,
    /// Of the data.
    pub seed: u64,
}

pub(super) fn cases() -> Vec<Case> {
    let kinds = [Logits::Peaked, Logits::Flat, Logits::Masked, Logits::Tie];
    let mut cases = Vec::new();
    for (number, vocabulary) in [1, 2, 15, 16, 17, 33, 64, 257, 1000, 49_152].into_iter().enumerate() {
        let last = vocabulary as i32 - 1;
        for target in [0, last, last / 2, -1, vocabulary as i32, i32::MIN, i32::MAX] {
            let rows = kinds.map(|kind| (kind, target)).to_vec();
            cases.push(Case { vocabulary, rows, layout: LAYOUTS[number % 3], seed: number as u64 });
        }
        cases.push(Case { vocabulary, rows: vec![], layout: Layout::Dense, seed: 0 });
    }
    cases
}

pub(super) fn body<B: Backend>(device: &B, case: &Case) -> Verdict {
    let Case { vocabulary, rows, layout, seed } = case;
    let stream = &mut device.stream()?;
    let mut rng = Rng::new(*seed);
    let values: Vec<f32> = rows.iter().flat_map(|row| logits(&mut rng, row.0, *vocabulary)).collect();
    let targets: Vec<i32> = rows.iter().map(|row| row.1).collect();
    let dims = [rows.len(), *vocabulary];
    let (logits, values) = Guarded::<B>::input(stream, DType::F32, &values, &dims, *layout)?;
    let targets_tensor = Guarded::<B>::integers(stream, DType::I32, &targets, &[rows.len()], Layout::Dense)?;
    let out = Guarded::<B>::output(stream, DType::F32, &[rows.len()], Layout::Dense)?;
    let args = LogProbArgs { logits: &logits.view, targets: &targets_tensor.view, out: &out.view };
    device.log_probs(stream, args.check()?)?;
    let expected: Vec<Bound> = values
        .chunks_exact(*vocabulary)
        .zip(&targets)
        .map(|(row, &target)| oracle::sampling::log_prob(row, target))
        .collect();
    judge("out", &[rows.len()], &out.read(stream)?, &expected)
}
