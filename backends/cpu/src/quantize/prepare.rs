//! What happens to a row before it is quantised: smoothing, columns set aside, rotation.

use crate::{
    row::{Row, Smoothed},
    simd::{Isa, LANES, StoredFloat},
};

/// What happens to every row.
#[derive(Clone, Copy)]
pub(super) struct Prepare<'a> {
    /// `[columns]`: what columns are divided by.
    pub(super) factors: Option<&'a [f32]>,
    /// Columns to set aside; others than there are keep nothing.
    pub(super) outliers: &'a [i32],
    /// Columns of a rotated block.
    pub(super) block: Option<usize>,
}

impl Prepare<'_> {
    /// `row`, prepared, into memory of its own length.
    #[inline(always)]
    pub(super) fn row<I: Isa>(&self, isa: I, row: &impl Row, to: &mut [f32]) {
        self.smooth(isa, row, to);
        self.finish(to);
    }

    /// The same, with the outliers kept in `values`.
    #[inline(always)]
    pub(super) fn row_and_outliers<I: Isa, V: StoredFloat>(
        &self,
        isa: I,
        row: &impl Row,
        to: &mut [f32],
        values: &mut [V],
    ) {
        self.smooth(isa, row, to);
        for (columns, values) in self.outliers.chunks(LANES).zip(values.chunks_mut(LANES)) {
            let mut kept = [0.0; LANES];
            for (kept, &column) in kept.iter_mut().zip(columns) {
                let y = usize::try_from(column).ok().and_then(|column| to.get(column));
                *kept = y.copied().unwrap_or(0.0);
            }
            V::store_partial(isa, isa.load(&kept), values);
        }
        self.finish(to);
    }

    #[inline(always)]
    fn smooth<I: Isa>(&self, isa: I, row: &impl Row, to: &mut [f32]) {
        let row = Smoothed { row, factors: self.factors };
        for (vector, to) in to.chunks_mut(LANES).enumerate() {
            isa.store_partial(row.at(isa, vector * LANES), to);
        }
    }

    #[inline(always)]
    fn finish(&self, to: &mut [f32]) {
        for &column in self.outliers {
            if let Some(y) = usize::try_from(column).ok().and_then(|column| to.get_mut(column)) {
                *y = 0.0;
            }
        }
        if let Some(block) = self.block {
            for block in to.chunks_exact_mut(block) {
                rotate(block);
            }
        }
    }
}

/// The normalised Walsh-Hadamard transform, by halves of 1, 2, 4 ...: sums and differences, which all tiers round alike.
#[inline(always)]
pub(super) fn rotate(block: &mut [f32]) {
    let mut half = 1;
    while half < block.len() {
        for pair in block.chunks_exact_mut(2 * half) {
            let (left, right) = pair.split_at_mut(half);
            for (a, b) in left.iter_mut().zip(right) {
                (*a, *b) = (*a + *b, *a - *b);
            }
        }
        half *= 2;
    }
    let factor = 1.0 / (block.len() as f32).sqrt();
    for x in block {
        *x *= factor;
    }
}
