//! Up to 12 query rows against one part of the keys and values.
//!
//! ```text
//! s = (sum q[d] k[d]) scale     s = cap tanh(s / cap), with a soft-cap     s = s - slope |j - own|, with linear biases
//! m = max s     p = e^(s - m)     l = sum p     o = sum p v
//! ```
//!
//! over the positions that a row sees, starting from nothing, and then merged into the row's state. The bits of a row
//! depend on nothing but the row: each score is one chain of multiply-adds in ascending d and each output one in
//! ascending position; maximum and sum go over lanes fixed by the position; and where rows of a tile see different
//! positions, a row skips those it does not see instead of multiplying them by zero, since a key or value there may
//! be NaN.

use std::ops::Range;

use super::{
    alibi::{Alibi, Bias},
    choice::Products,
    int8,
    operands::{IN_PLACE_ROWS, InPlace, Operands},
    stage::{CHUNK, KvBlocks, MAX_PART, Part, PartShape},
    state::{Factors, Line, MAX_ROWS, State},
    visible::PartLanes,
    weigh::{Sums, weigh},
};
use crate::simd::{Isa, Kernel, LANES, Mask, SoftCap, first_lanes, math};

/// Elements from a row's scores to the next row's: a constant, so that all rows are reached from one pointer, and not
/// a power of two, so that they do not share cache sets.
pub(super) const STRIDE: usize = MAX_PART + LANES;

/// Lines of scratch for a tile's scores.
pub(crate) const SCORE_LINES: usize = MAX_ROWS * STRIDE / LANES;

/// Query rows against a part, merged into the rows' states.
pub(crate) struct PartTile<'a, 's, P> {
    /// Keys and values.
    pub(crate) part: P,
    /// `[rows][query_stride]`, each a query as the part's arithmetic wants it.
    pub(crate) queries: &'a [f32],
    /// What a product of query and key is multiplied with.
    pub(crate) scale: f32,
    /// Bounds the scores.
    pub(crate) soft_cap: Option<f32>,
    /// `[rows]`, for linear biases.
    pub(crate) alibi: Option<&'a [Alibi]>,
    /// `[rows]`: the first and the last position within the part that a row sees; an empty range for none.
    pub(crate) visible: &'a [Range<usize>],
    /// Where rows may miss positions between their first and their last.
    pub(crate) gaps: Option<Gaps<'a>>,
    /// At least [`SCORE_LINES`], of any content.
    pub(crate) scores: &'a mut [Line],
    /// The states of these rows.
    pub(crate) state: &'a mut State<'s>,
}

/// Which positions between the first and the last a row sees.
#[derive(Clone, Copy)]
pub(crate) struct Gaps<'a> {
    /// The first position within the part that a row may miss.
    pub(crate) from: usize,
    /// `[rows]`
    pub(crate) lanes: &'a [PartLanes],
}

impl Gaps<'_> {
    /// Whether a row sees a position of the part.
    #[inline(always)]
    fn sees(&self, row: usize, position: usize) -> bool {
        self.lanes[row][position / LANES] >> (position % LANES) & 1 == 1
    }
}

impl Kernel for PartTile<'_, '_, &Part<'_>> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        self.run_tile(isa);
    }
}

/// How many times 32 positions or value columns a tile takes at once: few rows take twice as many, since a chain of
/// multiply-adds alone waits for itself.
const fn wide(rows: usize) -> usize {
    if rows <= 3 { 2 } else { 1 }
}

/// The tiles that are compiled, by their rows, handed to another macro.
macro_rules! tiles {
    ($use:ident) => {
        $use!(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
    };
}

/// Runs a tile by its number of rows, one of those listed.
macro_rules! enter {
    ($isa:ident, $tile:ident, $span:ident, $($rows:literal),*) => {
        match $tile.visible.len() {
            $($rows => $isa.call(Body::<_, $rows, { wide($rows) }> { span: $span, tile: $tile }),)*
            rows => unreachable!("{rows} rows"),
        }
    };
}

impl<B: KvBlocks + Copy> Kernel for PartTile<'_, '_, &InPlace<B>> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        self.run_in_place(isa);
    }
}

impl PartTile<'_, '_, &Part<'_>> {
    /// For use inside another kernel.
    ///
    /// # Panics
    /// Where sizes disagree, there are more than 12 rows, or a row sees positions beyond the part.
    pub(crate) fn run_tile<I: Isa>(self, isa: I) {
        let Some(span) = self.checked_span() else { return };
        macro_rules! enter_listed {
            ($($rows:literal),*) => { enter!(isa, self, span, $($rows),*) };
        }
        tiles!(enter_listed);
    }
}

impl<B: KvBlocks + Copy> PartTile<'_, '_, &InPlace<B>> {
    /// For use inside another kernel.
    ///
    /// # Panics
    /// Where sizes disagree, there are more than [`IN_PLACE_ROWS`], or a row sees positions beyond the part.
    pub(super) fn run_in_place<I: Isa>(self, isa: I) {
        assert!(self.visible.len() <= IN_PLACE_ROWS, "{} rows in place", self.visible.len());
        let Some(span) = self.checked_span() else { return };
        enter!(isa, self, span, 1, 2, 3, 4, 5, 6, 7, 8);
    }
}

impl<'a, 's> PartTile<'a, 's, PartShape> {
    /// The same tile, over a part of that shape.
    #[inline(always)]
    pub(super) fn over<P>(self, part: P) -> PartTile<'a, 's, P> {
        let Self { queries, scale, soft_cap, alibi, visible, gaps, scores, state, .. } = self;
        PartTile { part, queries, scale, soft_cap, alibi, visible, gaps, scores, state }
    }
}

impl<P: Operands> PartTile<'_, '_, P> {
    /// What the rows see, if anything; compares the sizes.
    fn checked_span(&self) -> Option<Span> {
        let shape = self.part.shape();
        let rows = self.visible.len();
        assert!(rows <= MAX_ROWS && rows == self.state.rows(), "{rows} rows of {}", self.state.rows());
        assert_eq!(self.queries.len(), rows * shape.query_stride(), "queries of {rows} rows");
        assert!(self.visible.iter().all(|seen| seen.is_empty() || seen.end <= shape.positions()));
        assert!(self.alibi.is_none_or(|alibi| alibi.len() == rows));
        assert!(self.gaps.is_none_or(|gaps| gaps.lanes.len() == rows));
        span(self.visible, self.gaps)
    }
}

/// Positions that some row sees: from the first to the last.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) any: Range<usize>,
    /// Positions that every row sees which sees any; empty where there are none.
    pub(super) all: Range<usize>,
}

fn span(visible: &[Range<usize>], gaps: Option<Gaps<'_>>) -> Option<Span> {
    let live = || visible.iter().filter(|seen| !seen.is_empty());
    let any = live().map(|seen| seen.start).min()?..live().map(|seen| seen.end).max()?;
    let all = live().map(|seen| seen.start).max()?..live().map(|seen| seen.end).min()?;
    let all = all.start..all.end.min(gaps.map_or(usize::MAX, |gaps| gaps.from));
    // Where nothing is common, everything from the first position on goes row by row.
    let all = if all.is_empty() { any.start..any.start } else { all };
    Some(Span { any, all })
}

/// What the rows of a tile see.
#[derive(Clone, Copy)]
pub(super) struct Seen<'a> {
    pub(super) visible: &'a [Range<usize>],
    gaps: Option<Gaps<'a>>,
}

impl Seen<'_> {
    /// The lanes of a group of 16 positions that a row sees, where it sees any of the part.
    #[inline(always)]
    pub(super) fn lanes(&self, row: usize, group: usize) -> Mask {
        lanes(&self.visible[row], group * LANES) & self.gaps.map_or(Mask::MAX, |gaps| gaps.lanes[row][group])
    }

    #[inline(always)]
    pub(super) fn sees(&self, row: usize, position: usize) -> bool {
        self.visible[row].contains(&position) && self.gaps.is_none_or(|gaps| gaps.sees(row, position))
    }
}

/// A tile of `ROWS` rows that takes `WIDE` times 32 positions or value columns at once.
struct Body<'a, 's, P, const ROWS: usize, const WIDE: usize> {
    span: Span,
    tile: PartTile<'a, 's, P>,
}

impl<P: Operands, const ROWS: usize, const WIDE: usize> Kernel for Body<'_, '_, P, ROWS, WIDE> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { span, tile } = self;
        let PartTile { part, queries, scale, soft_cap, alibi, visible, gaps, scores, state } = tile;
        let scores: &mut [f32] = bytemuck::cast_slice_mut(&mut scores[..SCORE_LINES]);
        let groups = span.any.start / LANES..span.any.end.div_ceil(LANES);

        match (part.shape().products(), part.staged()) {
            (Products::Int8Scores | Products::Int8, Some(part)) => {
                int8::scores::<I, ROWS>(isa, part, queries, scale, groups, scores);
            }
            _ => dot_all::<I, P, ROWS, WIDE>(isa, part, queries, scale, groups, scores),
        }

        let (mut m, mut l) = ([f32::NEG_INFINITY; LANES], [0.0; LANES]);
        for (r, seen) in visible.iter().enumerate() {
            if !seen.is_empty() {
                let scores = &mut scores[r * STRIDE..][..STRIDE];
                if let Some(cap) = soft_cap {
                    isa.call(SoftCap { cap, values: &mut scores[seen.clone()] });
                }
                if let Some(alibi) = alibi {
                    isa.call(Bias { alibi: alibi[r], first: seen.start, scores: &mut scores[seen.clone()] });
                }
                (m[r], l[r]) = softmax(isa, seen, gaps.map(|gaps| &gaps.lanes[r]), scores);
            }
        }

        let factors = state.merge_sums(isa, &m, &l);
        let (outputs, stride) = state.outputs();
        let chunks = part.shape().chunks();
        let seen = Seen { visible, gaps };
        if let (true, Some(part)) = (part.shape().int8_values(), part.staged()) {
            let weights = int8::Weights::<ROWS>::new(isa, part, seen, scores);
            for half in 0..2 * chunks {
                let sums = weights.sums(isa, part, span.any.clone(), (half / 2, half % 2));
                for (r, sums) in sums.iter().enumerate() {
                    let o = &mut outputs[r * stride + half * LANES..].as_chunks_mut().0[0];
                    factors.merge(isa, r, isa.load(sums), o);
                }
            }
            return;
        }
        let mut chunk = 0;
        while chunk < chunks {
            let wide = if chunk + WIDE <= chunks { WIDE } else { 1 };
            if wide == WIDE {
                let sums = weigh::<I, P, ROWS, WIDE>(isa, part, &span, seen, chunk, scores);
                merge(isa, &factors, &sums, &mut outputs[chunk * CHUNK..], stride);
            } else {
                let sums = weigh::<I, P, ROWS, 1>(isa, part, &span, seen, chunk, scores);
                merge(isa, &factors, &sums, &mut outputs[chunk * CHUNK..], stride);
            }
            chunk += wide;
        }
    }
}

/// Merges `WIDE` chunks of all rows into the states' outputs from the first chunk on.
#[inline(always)]
fn merge<I: Isa, const ROWS: usize, const WIDE: usize>(
    isa: I,
    factors: &Factors,
    sums: &Sums<ROWS, WIDE>,
    outputs: &mut [f32],
    stride: usize,
) {
    for (w, sums) in sums.iter().enumerate() {
        for (r, sums) in sums.iter().enumerate() {
            let (o, _) = outputs[r * stride + w * CHUNK..][..CHUNK].as_chunks_mut::<LANES>();
            factors.merge(isa, r, isa.load(&sums[0]), &mut o[0]);
            factors.merge(isa, r, isa.load(&sums[1]), &mut o[1]);
        }
    }
}

/// Scores of some groups of 16 positions for all rows.
#[inline(always)]
fn dot_all<I: Isa, P: Operands, const ROWS: usize, const WIDE: usize>(
    isa: I,
    part: P,
    queries: &[f32],
    scale: f32,
    groups: Range<usize>,
    scores: &mut [f32],
) {
    let (mut group, last) = (groups.start, groups.end.saturating_sub(1));
    while group + 2 * WIDE <= groups.end {
        dot::<I, P, ROWS, WIDE>(isa, part, queries, scale, group, last, scores);
        group += 2 * WIDE;
    }
    while group < groups.end {
        dot::<I, P, ROWS, 1>(isa, part, queries, scale, group, last, scores);
        group += 2;
    }
}

/// Scores of `2 * WIDE` groups of 16 positions for all rows. Those past `last` are of no use, and read its keys again.
#[inline(always)]
fn dot<I: Isa, P: Operands, const ROWS: usize, const WIDE: usize>(
    isa: I,
    part: P,
    queries: &[f32],
    scale: f32,
    group: usize,
    last: usize,
    scores: &mut [f32],
) {
    let head_dim = part.shape().head_dim();
    assert!(queries.len() >= ROWS * head_dim);
    let mut keys = [[part.keys(isa, group); 2]; WIDE];
    for (w, keys) in keys.iter_mut().enumerate() {
        let first = group + 2 * w;
        *keys = [part.keys(isa, first.min(last)), part.keys(isa, (first + 1).min(last))];
    }
    let mut acc = [[[isa.splat(0.0); 2]; ROWS]; WIDE];
    // Few pointers, as in the matrix tiles: rows r, r + 1 and r + 2 share one.
    let mut base: [*const f32; 4] = std::array::from_fn(|i| queries.as_ptr().wrapping_add(3 * i * head_dim));
    for d in 0..head_dim {
        for (acc, keys) in acc.iter_mut().zip(&keys) {
            // SAFETY: `d` is below the head dim.
            let k = unsafe { [P::key(isa, keys[0], d), P::key(isa, keys[1], d)] };
            for (r, acc) in acc.iter_mut().enumerate() {
                // SAFETY: each of the rows has `head_dim` values: the assertion above.
                let q = isa.splat(unsafe { *base[r / 3].add(r % 3 * head_dim) });
                *acc = [isa.mul_add(q, k[0], acc[0]), isa.mul_add(q, k[1], acc[1])];
            }
        }
        base = base.map(|p| p.wrapping_add(1));
    }
    let scale = isa.splat(scale);
    for (w, acc) in acc.into_iter().enumerate() {
        for (r, acc) in acc.into_iter().enumerate() {
            let row = &mut scores[r * STRIDE + (group + 2 * w) * LANES..][..2 * LANES];
            for (to, acc) in row.as_chunks_mut::<LANES>().0.iter_mut().zip(acc) {
                isa.store(isa.mul(acc, scale), to);
            }
        }
    }
}

/// The lanes of the group at `start` whose positions are seen.
#[inline(always)]
fn lanes(seen: &Range<usize>, start: usize) -> Mask {
    first_lanes(seen.end - start) & !first_lanes(seen.start.saturating_sub(start))
}

/// Turns a row's scores into `e^(s - m)` and returns `m` and their sum. NaN scores are passed over by the maximum and
/// reach the sum.
#[inline(always)]
fn softmax<I: Isa>(isa: I, seen: &Range<usize>, gaps: Option<&PartLanes>, scores: &mut [f32]) -> (f32, f32) {
    let groups = seen.start / LANES..seen.end.div_ceil(LANES);
    let scores = &mut scores.as_chunks_mut::<LANES>().0[groups.clone()];
    let first = groups.start;
    let lanes = |i: usize| {
        let group = first + i;
        lanes(seen, group * LANES) & gaps.map_or(Mask::MAX, |gaps| gaps[group])
    };
    let none = isa.splat(f32::NEG_INFINITY);
    let mut top = none;
    for (i, s) in scores.iter().enumerate() {
        let s = isa.select(lanes(i), isa.load(s), none);
        top = isa.max(s, top);
    }
    let m = isa.max_lane(top);
    // If every score is minus infinity the row saw nothing: 0 instead of m gives e^-inf = 0 and not NaN.
    let shift = isa.splat(if m == f32::NEG_INFINITY { 0.0 } else { m });
    let mut sum = isa.splat(0.0);
    for (i, s) in scores.iter_mut().enumerate() {
        let p = math::exp(isa, isa.sub(isa.load(s), shift));
        sum = isa.add(sum, isa.select(lanes(i), p, isa.splat(0.0)));
        isa.store(p, s);
    }
    (m, isa.sum(sum))
}

#[cfg(test)]
#[path = "tile_tests.rs"]
mod tests;
