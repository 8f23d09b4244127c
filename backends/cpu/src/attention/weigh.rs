//! The second product of a tile: values, weighted and summed over the positions that a row sees.

use std::ops::Range;

use super::{
    operands::Operands,
    tile::{STRIDE, Seen, Span},
};
use crate::simd::{Isa, Kernel, LANES};

/// Sums of weighted values, `WIDE` chunks of 32 columns for all rows.
#[inline(always)]
pub(super) fn weigh<I: Isa, P: Operands, const ROWS: usize, const WIDE: usize>(
    isa: I,
    part: P,
    span: &Span,
    seen: Seen<'_>,
    chunk: usize,
    weights: &[f32],
) -> Sums<ROWS, WIDE> {
    assert!(weights.len() >= ROWS * STRIDE && seen.visible.len() >= ROWS);
    assert!(span.any.end <= STRIDE && span.all.end <= STRIDE && chunk + WIDE <= part.shape().chunks());
    let from = Weighed { part, chunk, weights, seen };
    let mut sums: Sums<ROWS, WIDE> = [[[[0.0; LANES]; 2]; ROWS]; WIDE];
    let (before, after) = (span.any.start..span.all.start, span.all.end..span.any.end);
    if !before.is_empty() {
        isa.call(RowByRow { from, positions: before, sums: &mut sums });
    }
    if !span.all.is_empty() {
        isa.call(AllRows { from, positions: span.all.clone(), sums: &mut sums });
    }
    if !after.is_empty() {
        isa.call(RowByRow { from, positions: after, sums: &mut sums });
    }
    sums
}

/// Where [`weigh`] reads, which has checked that there are `WIDE` chunks from `chunk` on, and for each of the rows
/// [`STRIDE`] weights and what it sees.
#[derive(Clone, Copy)]
struct Weighed<'a, P> {
    part: P,
    chunk: usize,
    weights: &'a [f32],
    seen: Seen<'a>,
}

impl<P> Weighed<'_, P> {
    /// # Safety
    /// One of the rows, and a position below [`STRIDE`].
    #[inline(always)]
    unsafe fn weight<I: Isa>(&self, isa: I, row: usize, position: usize) -> I::F32 {
        // SAFETY: the caller's promise.
        isa.splat(unsafe { *self.weights.as_ptr().add(row * STRIDE + position) })
    }
}

/// Some positions, by their groups of 16.
#[inline(always)]
fn by_groups(positions: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> {
    (positions.start / LANES..positions.end.div_ceil(LANES)).map(move |group| {
        let start = group * LANES;
        (group, positions.start.max(start)..positions.end.min(start + LANES))
    })
}

/// The sums of `WIDE` chunks for all rows.
pub(super) type Sums<const ROWS: usize, const WIDE: usize> = [[[[f32; LANES]; 2]; ROWS]; WIDE];

/// Adds positions that every row sees. A kernel of its own: the accumulators stay in registers only while every loop over
/// them is short enough to be unrolled.
struct AllRows<'a, P, const ROWS: usize, const WIDE: usize> {
    from: Weighed<'a, P>,
    positions: Range<usize>,
    sums: &'a mut Sums<ROWS, WIDE>,
}

impl<P: Operands, const ROWS: usize, const WIDE: usize> Kernel for AllRows<'_, P, ROWS, WIDE> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { from, positions, sums } = self;
        let mut acc = [[[isa.splat(0.0); 2]; ROWS]; WIDE];
        for (acc, sums) in acc.iter_mut().zip(sums.iter()) {
            for (acc, sums) in acc.iter_mut().zip(sums) {
                *acc = [isa.load(&sums[0]), isa.load(&sums[1])];
            }
        }
        for (group, positions) in by_groups(positions) {
            let values = from.part.values(isa, group);
            for j in positions {
                for (w, acc) in acc.iter_mut().enumerate() {
                    // SAFETY: `weigh` has compared chunks, rows and positions.
                    let v = unsafe { P::value(isa, values, j % LANES, from.chunk + w) };
                    for (r, acc) in acc.iter_mut().enumerate() {
                        // SAFETY: as above.
                        let p = unsafe { from.weight(isa, r, j) };
                        *acc = [isa.mul_add(p, v[0], acc[0]), isa.mul_add(p, v[1], acc[1])];
                    }
                }
            }
        }
        for (sums, acc) in sums.iter_mut().zip(&acc) {
            for (sums, acc) in sums.iter_mut().zip(acc) {
                isa.store(acc[0], &mut sums[0]);
                isa.store(acc[1], &mut sums[1]);
            }
        }
    }
}

/// Adds positions that some rows see and others do not: few, so its sums may stay in memory.
struct RowByRow<'a, P, const ROWS: usize, const WIDE: usize> {
    from: Weighed<'a, P>,
    positions: Range<usize>,
    sums: &'a mut Sums<ROWS, WIDE>,
}

impl<P: Operands, const ROWS: usize, const WIDE: usize> Kernel for RowByRow<'_, P, ROWS, WIDE> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { from, positions, sums } = self;
        for (group, positions) in by_groups(positions) {
            let values = from.part.values(isa, group);
            for j in positions {
                for (w, sums) in sums.iter_mut().enumerate() {
                    // SAFETY: `weigh` has compared chunks, rows and positions.
                    let v = unsafe { P::value(isa, values, j % LANES, from.chunk + w) };
                    for (r, sums) in sums.iter_mut().enumerate() {
                        if !from.seen.sees(r, j) {
                            continue;
                        }
                        // SAFETY: as above.
                        let p = unsafe { from.weight(isa, r, j) };
                        for (sums, v) in sums.iter_mut().zip(v) {
                            isa.store(isa.mul_add(p, v, isa.load(sums)), sums);
                        }
                    }
                }
            }
        }
    }
}
