//! Many rows of one format.

use super::{
    prepare::Prepare,
    row::{Steps, quantize_row, range},
};
use crate::{
    row::{Row, Segment, Smoothed, StoredRow, Target},
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

/// A task's part of an output, and how many elements lie from an outer and an inner index to the next.
pub(super) struct Part<'a, T> {
    pub(super) data: &'a mut [T],
    pub(super) outer: usize,
    pub(super) inner: usize,
}

impl<'a, T> Part<'a, T> {
    /// The first outer rows, at most `count`, which the rest then begins after.
    pub(super) fn take(&mut self, count: usize) -> Part<'a, T> {
        let data = super::take(&mut self.data, count.saturating_mul(self.outer));
        Part { data, ..*self }
    }

    /// From a row on.
    #[inline(always)]
    fn at(&mut self, outer: usize, inner: usize) -> &mut [T] {
        &mut self.data[outer * self.outer + inner * self.inner..]
    }
}

/// A task's rows as integers.
pub(crate) struct IntegerRows<'a, V> {
    pub(super) method: Method,
    pub(super) prepare: Prepare<'a>,
    /// A row's memory; empty where rows are read as they come, see [`buffered`](super::into::buffered).
    pub(super) buffer: &'a mut [f32],
    pub(super) q: Part<'a, i8>,
    /// Of each row, or each of its groups; empty where known.
    pub(super) scales: Part<'a, f32>,
    /// Of formats that have them.
    pub(super) zeros: Part<'a, i32>,
    /// The columns set aside.
    pub(super) outliers: Part<'a, V>,
}

impl<V: StoredFloat> Target for IntegerRows<'_, V> {
    #[inline(always)]
    fn store<I: Isa>(&mut self, isa: I, outer: usize, inner: usize, y: &impl Row) {
        match self.method {
            // Computed twice, which spares the memory.
            Method::Symmetric { group } if self.buffer.is_empty() => {
                let y = Smoothed { row: y, factors: self.prepare.factors };
                self.symmetric(isa, outer, inner, &y, group);
            }
            _ => {
                let buffer = std::mem::take(&mut self.buffer);
                let count = self.prepare.outliers.len();
                let values = if count > 0 { &mut self.outliers.at(outer, inner)[..count] } else { &mut [] };
                self.prepare.row_and_outliers(isa, y, buffer, values);
                self.integers(isa, outer, inner, &StoredRow(&*buffer));
                self.buffer = buffer;
            }
        }
    }
}

impl<V> IntegerRows<'_, V> {
    /// A row that is prepared already.
    #[inline(always)]
    fn integers<I: Isa, T: StoredFloat>(&mut self, isa: I, outer: usize, inner: usize, y: &StoredRow<'_, T>) {
        let q = &mut self.q.at(outer, inner)[..y.len()];
        match self.method {
            Method::Symmetric { group } => self.symmetric(isa, outer, inner, y, group),
            Method::Asymmetric { flip } => {
                let [below, above] = range(isa, y);
                let steps = Steps::of_range(below, above, flip);
                steps.quantize(isa, y, q);
                self.scales.at(outer, inner)[0] = steps.scale;
                self.zeros.at(outer, inner)[0] = steps.zero.unwrap_or(0);
            }
            Method::Known(steps) => steps.quantize(isa, y, q),
        }
    }

    #[inline(always)]
    fn symmetric<I: Isa>(&mut self, isa: I, outer: usize, inner: usize, y: &impl Row, group: usize) {
        let q = &mut self.q.at(outer, inner)[..y.len()];
        let scales = self.scales.at(outer, inner);
        let starts = (0..y.len()).step_by(group);
        for ((start, q), scale) in starts.zip(q.chunks_mut(group)).zip(scales) {
            *scale = quantize_row(isa, &Segment { row: y, start, len: q.len() }, q);
        }
    }
}

/// Some rows of `x`, from `first` on.
pub(super) struct QuantizeRows<'a, T> {
    pub(super) x: &'a [T],
    pub(super) rows: Rows,
    pub(super) first: usize,
    pub(super) count: usize,
    pub(super) target: IntegerRows<'a, T>,
}

impl<T: StoredFloat> Kernel for QuantizeRows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(mut self, isa: I) {
        let as_it_is = self.target.buffer.is_empty() && self.target.prepare.factors.is_none();
        for row in 0..self.count {
            let x = StoredRow(self.rows.row(self.x, self.first + row));
            if as_it_is {
                self.target.integers(isa, row, 0, &x);
            } else {
                self.target.store(isa, row, 0, &x);
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
    pub(super) prepare: Prepare<'a>,
    /// As [`IntegerRows::buffer`].
    pub(super) buffer: &'a mut [f32],
    pub(super) range: &'a Range,
}

impl<T: StoredFloat> Kernel for RangeOfRows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        for row in self.which {
            let x = StoredRow(self.rows.row(self.x, row));
            let [below, above] = if self.buffer.is_empty() {
                range(isa, &x)
            } else {
                self.prepare.row(isa, &x, self.buffer);
                range(isa, &StoredRow(&*self.buffer))
            };
            // Without the sign of -0.
            self.range.below.fetch_max(below.abs().to_bits(), Ordering::Relaxed);
            self.range.above.fetch_max(above.abs().to_bits(), Ordering::Relaxed);
        }
    }
}
