//! A step as calls of CANN's operator.
//!
//! What the operator gives to a row that sees none of its keys no document says, so such rows are not asked about: they are 0, with a
//! log-sum-exp of -inf. The others of a step go into one call where this release takes sequences of any lengths, one after the
//! other, and otherwise into a call for each run of sequences with equally many rows, which every release takes.

use std::ops::Range;

use halite_kernels::attention::{AttentionStep, Mask};

/// The most sequences of a call.
const MOST_SEQUENCES: usize = 65_536;

/// The calls of a step.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Runs {
    /// Rows that see nothing.
    pub(super) unseeing: Vec<Range<usize>>,
    /// Of every sequence with rows that see something, in order: where those end among the step's rows,
    pub(super) row_ends: Vec<i64>,
    /// how many positions there are,
    pub(super) kv_lens: Vec<i64>,
    /// and which sequence of the step it is.
    pub(super) sequences: Vec<usize>,
    pub(super) runs: Vec<Run>,
}

/// Sequences with equally many rows that see something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Rows of each,
    pub(super) each: usize,
    /// and of all, among the step's.
    pub(super) rows: Range<usize>,
    /// Places in [`Runs::sequences`].
    pub(super) sequences: Range<usize>,
}

impl Runs {
    /// Of a step that was checked. The mask is causal or bidirectional.
    pub(super) fn of(mask: Mask, step: &AttentionStep<'_>) -> Self {
        let mut runs = Runs::default();
        for (sequence, (ends, &kv_len)) in step.cu_seqlens.windows(2).zip(step.kv_lens).enumerate() {
            let (start, end, kv_len) = (ends[0] as usize, ends[1] as usize, kv_len as usize);
            let without = match mask {
                Mask::Bidirectional if kv_len > 0 => 0,
                Mask::Bidirectional => end - start,
                _ => (end - start).saturating_sub(kv_len),
            };
            let first = start + without;
            if without > 0 {
                runs.unseeing.push(start..first);
            }
            if first < end {
                runs.push(sequence, first..end, kv_len);
            }
        }
        runs
    }

    fn push(&mut self, sequence: usize, rows: Range<usize>, kv_len: usize) {
        let place = self.sequences.len();
        self.row_ends.push(rows.end as i64);
        self.kv_lens.push(kv_len as i64);
        self.sequences.push(sequence);
        match self.runs.last_mut() {
            Some(run)
                if run.each == rows.len()
                    && run.rows.end == rows.start
                    && run.sequences.len() < MOST_SEQUENCES =>
            {
                run.rows.end = rows.end;
                run.sequences.end = place + 1;
            }
            _ => self.runs.push(Run { each: rows.len(), rows, sequences: place..place + 1 }),
        }
    }

    /// Whether sequences of any lengths make up all rows, one after the other.
    pub(super) fn is_whole(&self) -> bool {
        self.unseeing.is_empty()
    }

    /// Whether some sequence has rows that see more than others.
    pub(super) fn has_steps(&self) -> bool {
        self.runs.iter().any(|run| run.each > 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(mask: Mask, cu_seqlens: &[u32], kv_lens: &[u32]) -> Runs {
        Runs::of(
            mask,
            &AttentionStep { cu_seqlens, kv_lens, kv_ranges: &[], block_table: &[], tree_parents: &[] },
        )
    }

    #[test]
    fn equal_lengths_beside_each_other_are_one_run() {
        let got = runs(Mask::Causal, &[0, 1, 2, 2, 5, 8, 9], &[7, 130, 4, 3, 9, 1]);
        let run = |each, rows, sequences| Run { each, rows, sequences };
        assert_eq!(got.runs, [run(1, 0..2, 0..2), run(3, 2..8, 2..4), run(1, 8..9, 4..5)]);
        assert_eq!(
            (got.row_ends.as_slice(), got.kv_lens.as_slice()),
            (&[1, 2, 5, 8, 9][..], &[7, 130, 3, 9, 1][..])
        );
        assert_eq!(got.sequences, [0, 1, 3, 4, 5], "the third has no rows");
        assert!(got.is_whole() && got.has_steps());
    }

    #[test]
    fn rows_that_see_nothing_are_apart() {
        let got = runs(Mask::Causal, &[0, 4, 6, 7], &[2, 0, 1]);
        assert_eq!(got.unseeing, [0..2, 4..6]);
        assert_eq!(got.runs.iter().map(|run| run.rows.clone()).collect::<Vec<_>>(), [2..4, 6..7]);
        let got = runs(Mask::Bidirectional, &[0, 4, 6, 7], &[2, 0, 1]);
        assert_eq!((got.unseeing.len(), got.unseeing.first()), (1, Some(&(4..6))));
        assert_eq!(got.kv_lens, [2, 1]);
        assert_eq!(runs(Mask::Causal, &[0], &[]), Runs::default());
    }
}
