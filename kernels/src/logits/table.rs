//! A step's requests as words, for backends whose kernels read them from a table.

use super::{LogitsCapacity, LogitsRow, LogitsSpec, LogitsStep, SeenToken};
use std::iter::Peekable;

/// Words of a row's penalties: F32 repetition, presence and frequency.
const PENALTIES: usize = 3;
/// Words of a touched token: its row, the token, what is done to it, and F32 what is added to its logit.
const TOUCHED: usize = 4;
/// Of the third word of a touched token: it has a penalty, it has a bias; above both, how often it is in the output.
const SEEN: u32 = 1;
const BIASED: u32 = 2;
const OUTPUTS_SHIFT: u32 = 2;

/// Where a step's requests lie in a table of words:
///
/// 1. `[rows, 3]`: the penalties of each row, F32 repetition, presence and frequency;
/// 2. from [`LogitsTable::touched_start`] on, `[touched, 4]`: each token of a row that penalties or a bias touch, once, in
///    ascending order of row and token: the row, the token, what is done to it, the F32 bias. Of the third word bit 0 says
///    that penalties touch it, bit 1 that a bias does, and the bits above are how often it is in the output;
/// 3. from [`LogitsTable::masked_start`] on, `[masked]`: the numbers of the rows that have a mask;
/// 4. from [`LogitsTable::masks_start`] on, `[masked, mask_words]`: their masks.
///
/// The default is the table of no rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogitsTable {
    /// Rows of the step.
    pub rows: usize,
    /// Tokens that penalties or biases touch, of all rows.
    pub touched: usize,
    /// Rows that have a mask.
    pub masked: usize,
}

impl LogitsTable {
    /// The most words of a step within `capacity`.
    pub fn max_words(spec: &LogitsSpec, capacity: &LogitsCapacity) -> usize {
        let touched = capacity.max_history.saturating_add(capacity.max_biases).saturating_mul(TOUCHED);
        let row = PENALTIES + 1 + spec.mask_words();
        capacity.max_rows.saturating_mul(row).saturating_add(touched)
    }

    /// Fills an empty list with a step's words; `seen` is emptied, and its memory used.
    pub fn fill(step: &LogitsStep<'_>, words: &mut Vec<u32>, seen: &mut Vec<SeenToken>) -> Self {
        for row in step.rows {
            let penalties = row.penalties;
            let numbers = [penalties.repetition, penalties.presence, penalties.frequency];
            words.extend(numbers.map(f32::to_bits));
        }
        let mut touched = 0;
        for (number, row) in step.rows.iter().enumerate() {
            seen.clear();
            row.seen(seen);
            for [token, what, bias] in touched_tokens(seen, row) {
                words.extend([number as u32, token, what, bias]);
                touched += 1;
            }
        }
        let masks = || step.rows.iter().enumerate().filter_map(|(row, asked)| Some((row, asked.allowed?)));
        words.extend(masks().map(|(row, _)| row as u32));
        masks().for_each(|(_, mask)| words.extend_from_slice(mask));
        LogitsTable { rows: step.rows.len(), touched, masked: masks().count() }
    }

    /// The word at which touched tokens begin.
    pub fn touched_start(&self) -> usize {
        self.rows * PENALTIES
    }

    /// The word at which the numbers of masked rows begin.
    pub fn masked_start(&self) -> usize {
        self.touched_start() + self.touched * TOUCHED
    }

    /// The word at which masks begin.
    pub fn masks_start(&self) -> usize {
        self.masked_start() + self.masked
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

fn touched_tokens(seen: &[SeenToken], row: &LogitsRow<'_>) -> impl Iterator<Item = [u32; 3]> {
    Touched { seen: seen.iter().copied().peekable(), bias: row.bias.iter().copied().peekable() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logits::Penalties;

    #[test]
    fn a_token_comes_once_with_its_penalty_and_its_bias() {
        let penalties = Penalties::NONE.with_repetition(2.0);
        let bias = [(1, 0.5), (7, -1.0)];
        let row = LogitsRow::unchanged().with_penalties(penalties, &[7, 3], &[9, 7, 7]).with_bias(&bias);
        let mut seen = Vec::new();
        row.seen(&mut seen);
        let got: Vec<_> = touched_tokens(&seen, &row).collect();
        let (half, less) = (0.5f32.to_bits(), (-1.0f32).to_bits());
        assert_eq!(got, [[1, 2, half], [3, 1, 0], [7, 1 | 2 | 2 << 2, less], [9, 1 | 1 << 2, 0]]);
        assert_eq!(touched_tokens(&[], &LogitsRow::unchanged()).count(), 0);
    }

    #[test]
    fn every_part_of_a_table_begins_where_it_says() {
        let (spec, bias) = (LogitsSpec::new(40), [(5, 2.0)]);
        let penalties = Penalties::NONE.with_presence(0.5).with_frequency(0.25);
        let rows = [
            LogitsRow::unchanged().with_allowed(&[1, 2]),
            LogitsRow::unchanged().with_penalties(penalties, &[], &[4]),
            LogitsRow::unchanged().with_bias(&bias).with_allowed(&[3, 4]),
        ];
        let (mut words, mut seen) = (Vec::new(), Vec::new());
        let table = LogitsTable::fill(&LogitsStep { rows: &rows }, &mut words, &mut seen);
        assert_eq!((table.rows, table.touched, table.masked), (3, 2, 2));
        let [none, one] = [0.0, 1.0].map(f32::to_bits);
        let [presence, frequency, two] = [0.5, 0.25, 2.0].map(f32::to_bits);
        assert_eq!(words[..9], [one, none, none, one, presence, frequency, one, none, none]);
        assert_eq!(words[table.touched_start()..table.masked_start()], [1, 4, 1 | 1 << 2, 0, 2, 5, 2, two]);
        assert_eq!(words[table.masked_start()..table.masks_start()], [0, 2]);
        assert_eq!(words[table.masks_start()..], [1, 2, 3, 4]);
        let capacity = LogitsCapacity::rows(3).with_history(1).with_biases(1);
        // One row has no mask, whose number and two words there was room for.
        assert_eq!(words.len() + 3, LogitsTable::max_words(&spec, &capacity));
        assert_eq!(LogitsTable::default().masks_start(), 0);
    }
}
