//! Many rows of one format.

use super::row::{Steps, quantize_row, range};
use crate::{
    row::StoredRow,
    simd::{Isa, Kernel, StoredFloat},
    view::Rows,
};
use std::sync::atomic::{AtomicU32, Ordering};

/// What the rows of one call have in common.
#[derive(Clone, Copy)]
pub(super) enum Method {
    /// A scale for each so many columns of a row.
    Symmetric { group: usize },
    /// A scale and a zero point a row; see [`Steps::flip`].
    Asymmetric { flip: u8 },
    /// One scale for all.
    Known(Steps),
}

/// Some rows of `x`, from `first` on.
pub(super) struct QuantizeRows<'a, T> {
    pub(super) x: &'a [T],
    pub(super) rows: Rows,
    pub(super) first: usize,
    pub(super) count: usize,
    pub(super) method: Method,
    pub(super) q: &'a mut [i8],
    pub(super) q_stride: usize,
    /// `[count][groups]`, rows `scale_stride` apart; empty where known.
    pub(super) scales: &'a mut [f32],
    pub(super) scale_stride: usize,
    /// `[count]` of formats that have them.
    pub(super) zeros: &'a mut [i32],
}

impl<T: StoredFloat> Kernel for QuantizeRows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let columns = self.rows.columns;
        for row in 0..self.count {
            let x = self.rows.row(self.x, self.first + row);
            let q = &mut self.q[row * self.q_stride..][..columns];
            match self.method {
                Method::Symmetric { group } => {
                    let scales = &mut self.scales[row * self.scale_stride..];
                    for ((x, q), scale) in x.chunks(group).zip(q.chunks_mut(group)).zip(scales) {
                        *scale = quantize_row(isa, &StoredRow(x), q);
                    }
                }
                Method::Asymmetric { flip } => {
                    let [below, above] = range(isa, &StoredRow(x));
                    let steps = Steps::of_range(below, above, flip);
                    (self.scales[row], self.zeros[row]) = (steps.scale, steps.zero.unwrap_or(0));
                    steps.quantize(isa, &StoredRow(x), q);
                }
                Method::Known(steps) => steps.quantize(isa, &StoredRow(x), q),
            }
        }
    }
}

/// How far all rows reach below and above 0, found by several tasks: the bits of positive floats are in their order.
#[derive(Default)]
pub(super) struct Range {
    below: AtomicU32,
    above: AtomicU32,
}

impl Range {
    pub(super) fn get(&self) -> [f32; 2] {
        [&self.below, &self.above].map(|bits| f32::from_bits(bits.load(Ordering::Relaxed)))
    }
}

/// Widens a range to some rows of `x`.
pub(super) struct RangeOfRows<'a, T> {
    pub(super) x: &'a [T],
    pub(super) rows: Rows,
    pub(super) which: std::ops::Range<usize>,
    pub(super) range: &'a Range,
}

impl<T: StoredFloat> Kernel for RangeOfRows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        for row in self.which {
            let [below, above] = range(isa, &StoredRow(self.rows.row(self.x, row)));
            // Without the sign of -0.
            self.range.below.fetch_max(below.abs().to_bits(), Ordering::Relaxed);
            self.range.above.fetch_max(above.abs().to_bits(), Ordering::Relaxed);
        }
    }
}
