//! How a product is cut into tiles, and which memory each tile asks for ahead of its use.

use std::ops::Range;

use crate::simd::Isa;

/// Activations that stay in the second-level cache while panels stream by.
const GROUP_BYTES: usize = 1 << 20;

/// How far ahead a panel is fetched when it is read once only.
const AHEAD_BYTES: usize = 4096;

/// One tile: some rows against one panel, or a few.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tile {
    /// The panels.
    pub(crate) panels: Range<usize>,
    /// The rows, at most the instruction set's `TILE_ROWS`, or [`TALL`](super::product::TALL) where a matrix unit takes them.
    pub(crate) rows: Range<usize>,
    /// This tile's share of the panel's readers: `share` of `shares`.
    share: usize,
    shares: usize,
}

impl Tile {
    /// The same share of the same panels, for other rows.
    pub(super) fn of_rows(&self, rows: Range<usize>) -> Self {
        Tile { panels: self.panels.clone(), rows, ..*self }
    }
}

/// How a product is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tiling {
    /// Rows of a tile; of the last one of a group what is left.
    pub(crate) height: usize,
    /// Panels of a tile; those left over at the end go one by one.
    pub(crate) panels: usize,
    /// Rows that stay in cache while every panel passes once: whole tiles.
    pub(crate) group: usize,
}

impl Tiling {
    /// Of `rows` rows of `row_bytes`: as few tiles as `tile_rows` allows, and those evened out.
    pub(crate) const fn new(rows: usize, row_bytes: usize, tile_rows: usize, panels: usize) -> Self {
        Self::of_height(even_height(rows, tile_rows), row_bytes, panels)
    }

    /// Of tiles that all have `height` rows, but the last of a group.
    pub(crate) const fn of_height(height: usize, row_bytes: usize, panels: usize) -> Self {
        let group = at_least_one(GROUP_BYTES / at_least_one(height * row_bytes)) * height;
        Tiling { height, panels, group }
    }
}

/// The height of as few tiles of `rows` rows as `tile_rows` allows, evened out.
pub(super) const fn even_height(rows: usize, tile_rows: usize) -> usize {
    at_least_one(rows.div_ceil(at_least_one(rows.div_ceil(tile_rows))))
}

const fn at_least_one(n: usize) -> usize {
    if n == 0 { 1 } else { n }
}

/// Visits the tiles of `rows` rows against `panels`.
pub(crate) fn for_each_tile(
    Tiling { height, panels: panels_per_tile, group }: Tiling,
    rows: usize,
    panels: Range<usize>,
    mut visit: impl FnMut(Tile),
) {
    for start in (0..rows).step_by(group) {
        let end = rows.min(start + group);
        let shares = (end - start).div_ceil(height);
        let mut next = panels.start;
        while next < panels.end {
            let wide = if panels.end - next < panels_per_tile { 1 } else { panels_per_tile };
            for share in 0..shares {
                let first = start + share * height;
                let rows = first..end.min(first + height);
                visit(Tile { panels: next..next + wide, rows, share, shares });
            }
            next += wide;
        }
    }
}

/// Addresses to fetch, one or two lines a step of the inner loop.
///
/// A panel that one tile reads is fetched a few KB ahead of its use. Where several tiles read it in turn, it is in
/// cache from the second on, and each fetches its share of the next panel instead.
#[derive(Clone, Copy)]
pub(crate) struct Prefetch {
    address: *const u8,
    step: usize,
}

impl Prefetch {
    /// For a tile whose panel lies at `panel`, is `len` bytes long and is read `step` bytes at a time. The next panel
    /// follows it; past the last one the addresses are meaningless, which a prefetch may be.
    pub(crate) fn new(panel: *const u8, len: usize, step: usize, tile: &Tile) -> Self {
        if tile.shares == 1 {
            Self { address: panel.wrapping_add(AHEAD_BYTES), step }
        } else {
            let skipped = len / tile.shares * tile.share;
            Self { address: panel.wrapping_add(len + skipped), step: step / tile.shares }
        }
    }

    /// Fetches for one step.
    #[inline(always)]
    pub(crate) fn next<I: Isa>(&mut self, isa: I) {
        isa.prefetch(self.address);
        if self.step > 64 {
            isa.prefetch(self.address.wrapping_add(64));
        }
        self.address = self.address.wrapping_add(self.step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_cover_every_row_and_panel_once() {
        for rows in [0, 1, 11, 12, 13, 25, 600] {
            for row_bytes in [0, 1, 5000, 1 << 21] {
                for wide in [1, 2, 4] {
                    let mut seen = vec![0; rows * 7];
                    for_each_tile(Tiling::new(rows, row_bytes, 12, wide), rows, 2..9, |tile| {
                        assert!(!tile.rows.is_empty() && tile.rows.len() <= 12);
                        assert!(tile.share < tile.shares);
                        assert!(
                            tile.panels.len() == wide || tile.panels.len() == 1 && tile.panels.start >= 6
                        );
                        for row in tile.rows {
                            tile.panels.clone().for_each(|panel| seen[row * 7 + panel - 2] += 1);
                        }
                    });
                    assert!(
                        seen.iter().all(|&count| count == 1),
                        "rows {rows} of {row_bytes} bytes, {wide} panels"
                    );
                }
            }
        }
    }

    #[test]
    fn tile_heights_are_even() {
        let mut heights = Vec::new();
        for_each_tile(Tiling::new(13, 100, 12, 1), 13, 0..1, |tile| heights.push(tile.rows.len()));
        assert_eq!(heights, [7, 6]);
    }
}
