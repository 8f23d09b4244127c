//! How many query rows a workgroup has: as many as its memory holds.

use halite_kernels::attention::{AttentionSpec, cut::RowTile};

/// The most rows: an invocation keeps a sum for each of them, and 32 of 256 weigh the scores of one.
const MAX_ROWS: usize = 8;
/// Words of workgroup memory that every adapter has.
const WORDS: u64 = 16 << 10 >> 2;
/// Invocations of a workgroup.
const LANES: usize = 256;

/// The rows of a workgroup, for steps whose sequences have up to `longest` tokens; none where not even one row fits.
pub(super) fn fitting(spec: &AttentionSpec, longest: usize) -> Option<RowTile> {
    let fits = |rows: &usize| Room::new(spec, *rows).is_some_and(|room| room.words() <= WORDS);
    let rows = [MAX_ROWS, 4, 1].into_iter().find(fits)?;
    Some(RowTile::new(spec, rows, longest))
}

/// The room of a tile, which is as large as some that was found to fit.
pub(super) fn room(tile: RowTile, spec: &AttentionSpec) -> Room {
    let none = Room { rows: 0, scores: 0, query_quads: 0, part: 0 };
    Room::new(spec, tile.rows()).unwrap_or(none)
}

/// What the arrays of `attend.wgsl` have room for: rounded up, so that few kernels are compiled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) rows: u32,
    /// Scores, and then sums of values.
    pub(super) scores: u32,
    /// Vectors of four elements of queries.
    pub(super) query_quads: u32,
    /// Positions of a part.
    pub(super) part: u32,
}

impl Room {
    /// For so many rows; none where they are too large for any number.
    fn new(spec: &AttentionSpec, rows: usize) -> Option<Self> {
        let rows = [1, 4, MAX_ROWS].into_iter().find(|&room| rows <= room)?;
        let round = |n: usize, to: usize| u32::try_from(n.checked_next_multiple_of(to)?).ok();
        Some(Room {
            rows: rows as u32,
            scores: u32::try_from(
                rows.checked_mul(spec.kv_split)?.max(4 * LANES).checked_next_power_of_two()?,
            )
            .ok()?,
            query_quads: round(rows.checked_mul(spec.kv.head_dim.div_ceil(4))?.max(256), 64)?,
            part: round(spec.kv_split, 256)?,
        })
    }

    /// Words of workgroup memory in all: of each row there are 12 numbers besides.
    fn words(self) -> u64 {
        [self.scores, self.part, LANES as u32, 12 * self.rows].into_iter().map(u64::from).sum::<u64>()
            + 4 * u64::from(self.query_quads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use halite_kernels::cache::KvSpec;

    fn shape(group: usize, head_dim: usize, split: usize, longest: usize) -> Option<(usize, usize)> {
        let spec = AttentionSpec::causal(group, KvSpec::new(1, 1, head_dim)).with_kv_split(split);
        fitting(&spec, longest).map(|shape| (shape.tokens, shape.heads))
    }

    #[test]
    fn rows_are_what_memory_holds() {
        assert_eq!(shape(1, 128, 256, 1), Some((1, 1)), "decode");
        assert_eq!(shape(4, 128, 256, 1), Some((1, 4)));
        assert_eq!(shape(4, 128, 256, 3), Some((2, 4)), "prefill");
        assert_eq!(shape(1, 128, 256, 900), Some((8, 1)));
        assert_eq!(shape(9, 128, 256, 900), Some((1, 5)), "nine heads in two tiles");
        assert_eq!(shape(128, 576, 256, 1), Some((1, 4)), "latents");
        assert_eq!(shape(1, 128, 512, 900), Some((4, 1)));
        assert_eq!(shape(1, 4096, 256, 900), None);
        assert_eq!(shape(1, usize::MAX, 256, 1), None);
    }
}
