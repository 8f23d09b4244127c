//! Which positions the rows of a task see.

use super::stage::MAX_PART;
use crate::simd::{LANES, Mask as Lanes};
use halite_kernels::attention::Mask;
use std::ops::Range;

/// For one token, which positions of a part it sees: a bit each, a vector's positions together.
pub(super) type PartLanes = [Lanes; MAX_PART / LANES];

/// What a task's tokens see.
#[derive(Clone, Debug)]
pub(super) struct Visible<'a> {
    pub(super) mask: Mask,
    /// Positions of the sequence that are read.
    pub(super) read: Range<usize>,
    /// The position of the task's first token; negative where there are more queries than keys.
    pub(super) first: i64,
    /// The position of the step's first token of the sequence.
    pub(super) step_first: i64,
    /// The sequence's parents, with [`Mask::Tree`].
    pub(super) parents: &'a [i32],
}

impl Visible<'_> {
    /// The position of a token of the task.
    pub(super) fn position(&self, token: usize) -> i64 {
        self.first + token as i64
    }

    /// The first and the last position that a token sees of those that are read. Neither end decreases from a token to
    /// the next.
    pub(super) fn range(&self, token: usize) -> Range<usize> {
        let (seen, read) = (self.of_mask(token), &self.read);
        seen.start.clamp(read.start, read.end)..seen.end.clamp(read.start, read.end)
    }

    fn of_mask(&self, token: usize) -> Range<usize> {
        let end = usize::try_from(self.position(token) + 1).unwrap_or(0);
        match self.mask {
            Mask::Bidirectional => 0..usize::MAX,
            Mask::Sliding { window } => end.saturating_sub(window)..end,
            Mask::Chunked { chunk } => end.saturating_sub(1) / chunk * chunk..end,
            // Causal, or a tree, whose gaps `lanes` knows. The backend plans for no mask that it does not know.
            _ => 0..end,
        }
    }

    /// Whether tokens may miss positions between the first and the last of a part that ends before `end`.
    pub(super) fn has_gaps(&self, end: usize) -> bool {
        self.mask == Mask::Tree && end as i64 > self.step_first
    }

    /// Of the part that begins at `start`, what a token of a tree sees.
    pub(super) fn lanes(&self, token: usize, start: usize) -> PartLanes {
        let mut lanes = [0; MAX_PART / LANES];
        let mut see = |positions: Range<i64>| {
            let within = |at: i64| (at - start as i64).clamp(0, MAX_PART as i64) as usize;
            for at in within(positions.start)..within(positions.end) {
                lanes[at / LANES] |= 1 << (at % LANES);
            }
        };
        see(start as i64..self.step_first);
        // From the row to its ancestors; rows and parents count from the step's first token.
        let mut row = self.position(token) - self.step_first;
        while row >= 0 && self.step_first + row >= start as i64 {
            see(self.step_first + row..self.step_first + row + 1);
            row = self.parents.get(row as usize).map_or(-1, |&parent| i64::from(parent).min(row - 1));
        }
        lanes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visible(mask: Mask, kv_len: usize, q_len: i64) -> Visible<'static> {
        let first = kv_len as i64 - q_len;
        Visible { mask, read: 0..kv_len, first, step_first: first, parents: &[] }
    }

    #[test]
    fn ranges_are_the_masks() {
        for (mask, expected) in [
            (Mask::Causal, [0..0, 0..0, 0..1, 0..2, 0..3, 0..4, 0..5]),
            (Mask::Bidirectional, [0..5, 0..5, 0..5, 0..5, 0..5, 0..5, 0..5]),
            (Mask::Sliding { window: 2 }, [0..0, 0..0, 0..1, 0..2, 1..3, 2..4, 3..5]),
            (Mask::Chunked { chunk: 2 }, [0..0, 0..0, 0..1, 0..2, 2..3, 2..4, 4..5]),
            (Mask::Chunked { chunk: usize::MAX }, [0..0, 0..0, 0..1, 0..2, 0..3, 0..4, 0..5]),
        ] {
            let seen = visible(mask, 5, 7);
            assert_eq!(std::array::from_fn(|token| seen.range(token)), expected, "{mask:?}");
        }
    }

    #[test]
    fn what_is_not_read_is_not_seen() {
        for (mask, expected) in [
            (Mask::Causal, [2..2, 2..2, 2..2, 2..3, 2..4, 2..4, 2..4]),
            (Mask::Bidirectional, [2..4, 2..4, 2..4, 2..4, 2..4, 2..4, 2..4]),
            (Mask::Sliding { window: 2 }, [2..2, 2..2, 2..2, 2..3, 2..4, 3..4, 4..4]),
            (Mask::Chunked { chunk: 2 }, [2..2, 2..2, 2..2, 2..3, 2..4, 4..4, 4..4]),
        ] {
            let seen = Visible { read: 2..4, ..visible(mask, 6, 7) };
            assert_eq!(std::array::from_fn(|token| seen.range(token)), expected, "{mask:?}");
        }
    }

    #[test]
    fn a_tree_sees_what_was_before_and_its_ancestors() {
        // Six rows at positions 30 to 35, over the edge of a part at 32.
        let seen = Visible { parents: &[-1, 0, 0, 1, 3, -1], ..visible(Mask::Tree, 36, 6) };
        let positions = |token: usize, start: usize, len: usize| -> Vec<usize> {
            let lanes = seen.lanes(token, start);
            (0..len).filter(|at| lanes[at / LANES] >> (at % LANES) & 1 == 1).map(|at| start + at).collect()
        };
        assert_eq!(positions(4, 16, 16), (16..32).collect::<Vec<_>>());
        assert_eq!(positions(4, 32, 16), [33, 34]);
        assert_eq!(positions(2, 32, 16), [32]);
        assert_eq!(positions(2, 16, 16), (16..31).collect::<Vec<_>>());
        assert_eq!(positions(5, 16, 16), (16..30).collect::<Vec<_>>());
        assert_eq!(positions(5, 32, 16), [35]);
        assert!(seen.has_gaps(31) && !seen.has_gaps(30));
    }
}
