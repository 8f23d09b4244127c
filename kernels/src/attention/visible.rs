//! Which positions rows see, for backends: on the host, to know what there is to read.

use super::Mask;
use std::ops::Range;

/// The number that kernels know a mask by. A backend refuses masks that its kernels do not know.
pub fn code(mask: Mask) -> i32 {
    match mask {
        Mask::Causal => 0,
        Mask::Bidirectional => 1,
        Mask::Sliding { .. } => 2,
        Mask::Chunked { .. } => 3,
        Mask::Tree => 4,
    }
}

/// A mask's window or chunk, or 0: positions are below 2^31, so a larger one is as good as that.
pub fn span(mask: Mask) -> i32 {
    match mask {
        Mask::Sliding { window: span } | Mask::Chunked { chunk: span } => {
            i32::try_from(span).unwrap_or(i32::MAX)
        }
        _ => 0,
    }
}

/// From the first position that a row at position `own` sees to the last, of those that are read. Neither end decreases
/// from a row to the next.
pub fn visible(mask: Mask, own: i64, read: &Range<u32>) -> Range<u32> {
    let (end, span) = ((own + 1).max(0), i64::from(span(mask)));
    let seen = match mask {
        Mask::Bidirectional => 0..i64::MAX,
        Mask::Sliding { .. } => (end - span).max(0)..end,
        Mask::Chunked { .. } => (end - 1).max(0) / span.max(1) * span..end,
        _ => 0..end,
    };
    let within = |at: i64| at.clamp(read.start.into(), read.end.into()) as u32;
    within(seen.start)..within(seen.end)
}

/// Of each row of a tree the first row of the chain that ends with it, each row of which has the one before it as its
/// parent, and that first row's parent.
pub fn chains(parents: &[i32]) -> impl Iterator<Item = [i32; 2]> {
    let mut chain = [0, -1];
    let mut starts: Vec<[i32; 2]> = Vec::with_capacity(parents.len());
    for (row, &parent) in parents.iter().enumerate() {
        let row = row as i32;
        if row == 0 || parent != row - 1 {
            chain = [row, parent.min(row - 1)];
        }
        starts.push(chain);
    }
    starts.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_the_masks() {
        for (mask, expected) in [
            (Mask::Causal, [0..0, 0..0, 0..1, 0..2, 0..3, 0..4, 0..5]),
            (Mask::Bidirectional, [0..5, 0..5, 0..5, 0..5, 0..5, 0..5, 0..5]),
            (Mask::Sliding { window: 2 }, [0..0, 0..0, 0..1, 0..2, 1..3, 2..4, 3..5]),
            (Mask::Chunked { chunk: 2 }, [0..0, 0..0, 0..1, 0..2, 2..3, 2..4, 4..5]),
            (Mask::Chunked { chunk: usize::MAX }, [0..0, 0..0, 0..1, 0..2, 0..3, 0..4, 0..5]),
        ] {
            // Five positions and seven rows.
            let seen = std::array::from_fn(|row| visible(mask, row as i64 - 2, &(0..5)));
            assert_eq!(seen, expected, "{mask:?}");
        }
        assert_eq!(visible(Mask::Sliding { window: 2 }, 2, &(2..4)), 2..3, "what is not read is not seen");
        assert_eq!(visible(Mask::Causal, 1, &(2..4)), 2..2);
    }

    #[test]
    fn chains_end_where_a_parent_is_another() {
        let told: Vec<_> = chains(&[-1, 0, 1, 0, 3, -1, 5]).collect();
        assert_eq!(told, [[0, -1], [0, -1], [0, -1], [3, 0], [3, 0], [5, -1], [5, -1]]);
        assert_eq!(chains(&[]).count(), 0);
    }
}
