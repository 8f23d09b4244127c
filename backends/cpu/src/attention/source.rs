//! Where a task's keys and values come from.

use super::{
    int8::StageInt8,
    operands::InPlace,
    stage::{KvBlocks, Part, PartShape, Stage, Stored},
    state::Line,
    stored::StoredKv,
    tile::PartTile,
};
use crate::{
    buffer::{CpuBuffer, Reading},
    cache::{CpuKvCache, Kind},
    simd::{Isa, LANES},
};
use halite_hal::Result;
use halite_kernels::cache::KvCacheInfo;
use std::ops::Range;

/// What fills parts with keys and values, so that nothing after it knows how they are stored.
pub(crate) trait Source: Sync {
    /// Fills a part; `scratch` has as many lines as the plan was made with. Implementations are `#[inline(always)]`.
    fn stage<I: Isa>(&self, isa: I, staged: Staged<'_>, part: &mut Part<'_>, scratch: &mut [Line]);

    /// Whether few rows can have parts of this shape where they lie.
    fn reads_in_place(&self, _shape: &PartShape) -> bool {
        false
    }

    /// Runs a tile of at most [`IN_PLACE_ROWS`](super::operands::IN_PLACE_ROWS) over a part where it lies, of a source
    /// that says that it can. Implementations are `#[inline(always)]`.
    fn run_in_place<I: Isa>(&self, _isa: I, _staged: Staged<'_>, _tile: PartTile<'_, '_, PartShape>) {
        unreachable!("a source that reads in place says how")
    }
}

/// Which part of which head of which sequence is staged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Staged<'a> {
    /// The sequence's row of the block table: block ids, checked against the cache.
    pub(crate) table: &'a [i32],
    /// The KV head.
    pub(crate) kv_head: usize,
    /// Which positions.
    pub(crate) piece: Piece,
    /// The position after the last one that the task reads.
    pub(crate) end: usize,
}

/// One layer of a cache with keys and values of their own.
pub(super) struct Layer<'a, T> {
    pub(super) cache: &'a CpuKvCache,
    pub(super) keys: Stored<'a, T>,
    pub(super) values: Stored<'a, T>,
}

/// One layer of a cache, guarded for reading.
pub(super) struct Guarded<'a> {
    cache: &'a CpuKvCache,
    keys: [Reading<'a>; 2],
    values: [Reading<'a>; 2],
}

impl<'a> Guarded<'a> {
    /// Guards elements and scales.
    pub(super) fn new(cache: &'a CpuKvCache, layer: usize) -> Result<Self> {
        let read = |(memory, bytes): (&'a CpuBuffer, Range<u64>)| memory.read(bytes);
        let both = |kind| Ok([read(cache.elements(kind, layer))?, read(cache.scales(kind, layer))?]);
        Ok(Guarded { cache, keys: both(Kind::Keys)?, values: both(Kind::Values)? })
    }

    /// The layer, whose elements are of the cache's type.
    pub(super) fn layer<T: StoredKv>(&self) -> Layer<'_, T> {
        fn stored<'a, T: StoredKv>([elements, scales]: &'a [Reading<'_>; 2]) -> Stored<'a, T> {
            Stored { elements: bytemuck::cast_slice(elements), scales: bytemuck::cast_slice(scales) }
        }
        Layer { cache: self.cache, keys: stored(&self.keys), values: stored(&self.values) }
    }
}

/// One head of one sequence in a layer.
struct SequenceBlocks<'a, T> {
    layer: &'a Layer<'a, T>,
    /// Block ids, checked against the cache.
    table: &'a [i32],
    kv_head: usize,
}

impl<T> Clone for SequenceBlocks<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for SequenceBlocks<'_, T> {}

impl<T> SequenceBlocks<'_, T> {
    /// What is the head's in the sequence's n-th block.
    #[inline(always)]
    fn head<'m>(&self, layer: Stored<'m, T>, n: usize, kind: Kind) -> Stored<'m, T> {
        let (cache, heads) = (self.layer.cache, self.layer.cache.spec().kv_heads);
        let at = self.table[n] as usize * heads + self.kv_head;
        let (elements, scales) = (cache.block_elements(kind) / heads, cache.block_scales() / heads);
        Stored {
            elements: &layer.elements[at * elements..][..elements],
            scales: if layer.scales.is_empty() { &[] } else { &layer.scales[at * scales..][..scales] },
        }
    }
}

impl<T: StoredKv> KvBlocks for SequenceBlocks<'_, T> {
    type Element = T;

    #[inline(always)]
    fn keys(&self, block: usize) -> Stored<'_, T> {
        self.head(self.layer.keys, block, Kind::Keys)
    }

    #[inline(always)]
    fn values(&self, block: usize) -> Stored<'_, T> {
        self.head(self.layer.values, block, Kind::Values)
    }
}

impl<T: StoredKv> Source for Layer<'_, T> {
    #[inline(always)]
    fn stage<I: Isa>(&self, isa: I, staged: Staged<'_>, part: &mut Part<'_>, _scratch: &mut [Line]) {
        let Staged { table, kv_head, piece: Piece { start, from, len }, .. } = staged;
        let blocks = SequenceBlocks { layer: self, table, kv_head };
        let block_size = self.cache.spec().block_size;
        isa.call(Stage { part, start, from, len, block_size, blocks });
    }

    fn reads_in_place(&self, shape: &PartShape) -> bool {
        InPlace::<SequenceBlocks<'_, T>>::fits(self.cache.spec().block_size, shape)
    }

    #[inline(always)]
    fn run_in_place<I: Isa>(&self, isa: I, staged: Staged<'_>, tile: PartTile<'_, '_, PartShape>) {
        let Staged { table, kv_head, piece, end } = staged;
        let blocks = SequenceBlocks { layer: self, table, kv_head };
        let part = InPlace::new(blocks, self.cache.spec().block_size, tile.part, piece.start, end);
        tile.over(&part).run_in_place(isa);
    }
}

/// The same, for arithmetic in INT8.
pub(super) struct Int8Layer<'a>(pub(super) Layer<'a, i8>);

impl Source for Int8Layer<'_> {
    #[inline(always)]
    fn stage<I: Isa>(&self, isa: I, staged: Staged<'_>, part: &mut Part<'_>, _scratch: &mut [Line]) {
        let Staged { table, kv_head, piece: Piece { start, from, len }, .. } = staged;
        let blocks = SequenceBlocks { layer: &self.0, table, kv_head };
        let block_size = self.0.cache.spec().block_size;
        isa.call(StageInt8 { part, start, from, len, block_size, blocks });
    }
}

/// What of a part is staged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The part's first position.
    pub(crate) start: usize,
    /// Positions left out at its beginning: whole vectors.
    pub(crate) from: usize,
    /// Positions of the part, those left out included.
    pub(crate) len: usize,
}

/// The parts, of `positions` each, in which some row sees something. The others would leave every state as it is, so
/// leaving them out changes no bit.
pub(super) fn pieces(seen: Range<usize>, positions: usize) -> impl Iterator<Item = Piece> {
    (seen.start / positions * positions..seen.end).step_by(positions).map(move |start| Piece {
        start,
        from: seen.start.saturating_sub(start) / LANES * LANES,
        len: positions.min(seen.end - start),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_what_a_window_needs_and_no_more() {
        let piece = |start, from, len| Piece { start, from, len };
        for (seen, expected) in [
            (0..0, vec![]),
            (0..1, vec![piece(0, 0, 1)]),
            (0..65, vec![piece(0, 0, 64), piece(64, 0, 1)]),
            (63..64, vec![piece(0, 48, 64)]),
            (64..65, vec![piece(64, 0, 1)]),
            (79..130, vec![piece(64, 0, 64), piece(128, 0, 2)]),
            (80..130, vec![piece(64, 16, 64), piece(128, 0, 2)]),
        ] {
            assert_eq!(pieces(seen.clone(), 64).collect::<Vec<_>>(), expected, "{seen:?}");
        }
        // However long the sequence, a row with a window stages the window and less than a vector beside it.
        for end in 100_000..100_600 {
            let staged: usize = pieces(end - 512..end, 256).map(|piece| piece.len - piece.from).sum();
            assert!((512..512 + LANES).contains(&staged), "{staged} positions up to {end}");
        }
    }
}
