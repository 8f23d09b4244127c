//! Rows that are computed as they are read.
//!
//! What a closure from an index to a vector would say, as types: a closure that the compiler does not inline is
//! compiled without the instruction set, and each of its operations becomes a call.

use crate::{
    simd::{Isa, LANES, StoredFloat, first_lanes},
    view::Rows,
};

/// A row of F32 values.
pub(crate) trait Row {
    /// Elements.
    fn len(&self) -> usize;

    /// The vector from element `start` on, zeros beyond the row. Asked again, it gives the same bits.
    /// Implementations are `#[inline(always)]`.
    fn at<I: Isa>(&self, isa: I, start: usize) -> I::F32;
}

/// A row in memory.
#[derive(Clone, Copy)]
pub(crate) struct StoredRow<'a, T>(pub(crate) &'a [T]);

impl<T: StoredFloat> Row for StoredRow<'_, T> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn at<I: Isa>(&self, isa: I, start: usize) -> I::F32 {
        T::load_partial(isa, &self.0[start..self.0.len().min(start + LANES)])
    }
}

/// Where rows go that are computed as they are read.
pub(crate) trait Target {
    /// Takes a row by its outer and inner index among those of the task. Implementations are `#[inline(always)]`.
    fn store<I: Isa>(&mut self, isa: I, outer: usize, inner: usize, y: &impl Row);
}

/// Rows to memory, rounded to its type.
pub(crate) struct FloatRows<'a, T> {
    pub(crate) out: &'a mut [T],
    pub(crate) layout: Rows,
}

impl<T: StoredFloat> Target for FloatRows<'_, T> {
    #[inline(always)]
    fn store<I: Isa>(&mut self, isa: I, outer: usize, inner: usize, y: &impl Row) {
        let out = &mut self.out[self.layout.start(outer, inner)..][..self.layout.columns];
        for (vector, out) in out.chunks_mut(LANES).enumerate() {
            T::store_partial(isa, y.at(isa, vector * LANES), out);
        }
    }
}

/// `len` elements of a row from `start` on, which end with a whole vector or with the row.
pub(crate) struct Segment<'a, R> {
    pub(crate) row: &'a R,
    pub(crate) start: usize,
    pub(crate) len: usize,
}

impl<R: Row> Row for Segment<'_, R> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn at<I: Isa>(&self, isa: I, start: usize) -> I::F32 {
        self.row.at(isa, self.start + start)
    }
}

/// A row whose columns are divided by smoothing factors, where there are some.
pub(crate) struct Smoothed<'a, R> {
    pub(crate) row: R,
    /// `[columns]`
    pub(crate) factors: Option<&'a [f32]>,
}

impl<R: Row> Row for Smoothed<'_, R> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.row.len()
    }

    #[inline(always)]
    fn at<I: Isa>(&self, isa: I, start: usize) -> I::F32 {
        let y = self.row.at(isa, start);
        let Some(factors) = self.factors else { return y };
        let count = self.row.len() - start;
        let factors = isa.load_partial(&factors[start..start + count.min(LANES)]);
        // Beyond the row 0 / 0 is no zero.
        isa.select(first_lanes(count), isa.div(y, factors), isa.splat(0.0))
    }
}

impl<R: Row> Row for &R {
    #[inline(always)]
    fn len(&self) -> usize {
        (*self).len()
    }

    #[inline(always)]
    fn at<I: Isa>(&self, isa: I, start: usize) -> I::F32 {
        (*self).at(isa, start)
    }
}

/// The sum of a row: 16 running sums in ascending order, then the lanes' tree.
#[inline(always)]
pub(crate) fn sum_of<I: Isa>(isa: I, row: &impl Row) -> f32 {
    let mut sum = isa.splat(0.0);
    for start in (0..row.len()).step_by(LANES) {
        sum = isa.add(sum, row.at(isa, start));
    }
    isa.sum(sum)
}
