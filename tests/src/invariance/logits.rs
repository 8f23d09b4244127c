//! Adjusted logits, alone and in a batch.

use super::rows::{ROWS, same_rows};
use crate::{
    case::Verdict,
    poison::{Guarded, Layout},
    random::Rng,
};
use halite_kernels::{
    Backend, DType,
    logits::{LogitsArgs, LogitsCapacity, LogitsRow, LogitsSpec, LogitsStep, Penalties},
};

pub(super) fn rows<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let vocabulary = 301;
    let x: Vec<f32> = Rng::new(9).spreads(ROWS * vocabulary);
    let tokens: Vec<u32> = (0..400).map(|place| place * 37 % 301).collect();
    let mask: Vec<u32> = (0..20).map(|word: u32| word.wrapping_mul(0x9E37_79B9) | 1).collect();
    let asked = |row: usize| {
        let penalties = Penalties::NONE.with_repetition(1.0 + row as f32 / 10.0).with_frequency(0.3);
        let asked =
            LogitsRow::unchanged().with_penalties(penalties, &tokens[row..3 * row], &tokens[..row * 2]);
        let asked = asked.with_bias(&[(3, 0.1), (300, -0.7)][..row % 3]);
        if row % 2 == 1 { asked.with_allowed(&mask[row / 4..][..10]) } else { asked }
    };
    let asked: Vec<LogitsRow<'_>> = (0..ROWS).map(asked).collect();
    let capacity = LogitsCapacity::rows(ROWS).with_history(8 * ROWS * ROWS).with_biases(2 * ROWS);
    let mut plan = device.logits_plan(&LogitsSpec::new(vocabulary), &capacity)?;
    same_rows("adjusted logits", vocabulary * 4, |rows| {
        let step = LogitsStep { rows: &asked[rows.clone()] }.check(&plan)?;
        device.logits_update(stream, &mut plan, &step)?;
        let (dims, x) = ([rows.len(), vocabulary], &x[rows.start * vocabulary..rows.end * vocabulary]);
        let (logits, _) = Guarded::<B>::input(stream, DType::F32, x, &dims, Layout::Dense)?;
        device.adjust_logits(stream, LogitsArgs { plan: &plan, logits: &logits.view }.check()?)?;
        logits.read_bytes(stream)
    })
}
