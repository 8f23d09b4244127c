//! Log-probabilities of given tokens, the highest of each row, and those of all tokens.

use super::{KINDS, Logits, logits};
use crate::{
    case::Verdict,
    judge::judge,
    oracle,
    poison::{Guarded, LAYOUTS, Layout},
    random::Rng,
    tolerance::Bound,
};
use halite_kernels::{
    Backend, DType,
    sampling::{LogProbArgs, TopLogProbs},
};

/// One call: a row of each kind, and a target a row.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// Columns of the logits.
    pub vocabulary: usize,
    /// What each row holds, and its target.
    pub rows: Vec<(Logits, i32)>,
    /// The highest log-probabilities that are wanted, if any.
    pub top: Option<usize>,
    /// Whether all log-probabilities are wanted.
    pub all: bool,
    /// How the logits lie in memory.
    pub layout: Layout,
    /// Of the data.
    pub seed: u64,
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, vocabulary) in [1, 2, 15, 16, 17, 33, 64, 257, 1000, 49_152].into_iter().enumerate() {
        let last = vocabulary as i32 - 1;
        for target in [0, last, last / 2, -1, vocabulary as i32, i32::MIN, i32::MAX] {
            let (rows, layout) = (KINDS.map(|kind| (kind, target)).to_vec(), LAYOUTS[number % 3]);
            cases.push(Case { vocabulary, rows, top: None, all: target <= 0, layout, seed: number as u64 });
        }
        for top in [0, 1, 5, 20, vocabulary].into_iter().filter(|&top| top <= vocabulary.min(1000)) {
            let (rows, layout) = (KINDS.map(|kind| (kind, last)).to_vec(), LAYOUTS[top % 3]);
            let all = top % 2 == 1;
            cases.push(Case { vocabulary, rows, top: Some(top), all, layout, seed: number as u64 });
        }
        let layout = Layout::Dense;
        cases.push(Case { vocabulary, rows: vec![], top: Some(1), all: true, layout, seed: 0 });
    }
    for (number, top) in [None, Some(0)].into_iter().enumerate() {
        let rows = vec![(Logits::Peaked, 0), (Logits::Peaked, -1), (Logits::Flat, 5)];
        cases.push(Case { vocabulary: 0, rows, top, all: top.is_some(), layout: LAYOUTS[number], seed: 0 });
    }
    cases
}

pub(super) fn body<B: Backend>(device: &B, case: &Case) -> Verdict {
    let Case { vocabulary, rows, top, all, layout, seed } = case;
    let stream = &mut device.stream()?;
    let mut rng = Rng::new(*seed);
    let values: Vec<f32> = rows.iter().flat_map(|row| logits(&mut rng, row.0, *vocabulary)).collect();
    let targets: Vec<i32> = rows.iter().map(|row| row.1).collect();
    let dims = [rows.len(), *vocabulary];
    let (logits, values) = Guarded::<B>::input(stream, DType::F32, &values, &dims, *layout)?;
    let targets_tensor = Guarded::<B>::integers(stream, DType::I32, &targets, &[rows.len()], Layout::Dense)?;
    let out = Guarded::<B>::output(stream, DType::F32, &[rows.len()], Layout::Dense)?;
    let highest = [rows.len(), top.unwrap_or(0)];
    let ids = Guarded::<B>::output(stream, DType::I32, &highest, *layout)?;
    let log_probs = Guarded::<B>::output(stream, DType::F32, &highest, *layout)?;
    let log_softmax = Guarded::<B>::output(stream, DType::F32, &dims, *layout)?;
    let args = LogProbArgs {
        logits: &logits.view,
        targets: &targets_tensor.view,
        out: &out.view,
        top: top.map(|_| TopLogProbs::new(&ids.view, &log_probs.view)),
        all: all.then_some(&log_softmax.view),
    };
    device.log_probs(stream, args.check()?)?;
    // Rows of an empty vocabulary are rows too.
    let rows_of = || (0..rows.len()).map(|row| &values[row * vocabulary..][..*vocabulary]);
    let expected: Vec<Bound> =
        rows_of().zip(&targets).map(|(row, &target)| oracle::sampling::log_prob(row, target)).collect();
    judge("out", &[rows.len()], &out.read(stream)?, &expected)?;
    if *all {
        let expected: Vec<Bound> = rows_of().flat_map(oracle::sampling::log_softmax).collect();
        judge("all", &dims, &log_softmax.read(stream)?, &expected)?;
    } else {
        log_softmax.untouched(stream)?;
    }
    let top = rows_of().flat_map(|row| oracle::sampling::top_log_probs(row, top.unwrap_or(0)));
    let (places, expected): (Vec<_>, Vec<Bound>) = top.unzip();
    let places: Vec<Bound> = places.into_iter().map(|id| Bound::exact(id as f64)).collect();
    judge("top.ids", &highest, &ids.read(stream)?, &places)?;
    judge("top.log_probs", &highest, &log_probs.read(stream)?, &expected)
}
