//! What happens to rows before they are quantised: smoothing, columns set aside, rotation.

use crate::{
    row::{Row, StoredRow},
    simd::{Isa, Kernel, LANES, StoredFloat},
    view::Rows,
};

/// What happens to every row.
#[derive(Clone, Copy)]
pub(super) struct Steps<'a> {
    /// `[columns]`: what columns are divided by.
    pub(super) factors: Option<&'a [f32]>,
    /// Columns to set aside; others than there are keep nothing.
    pub(super) outliers: &'a [i32],
    /// Columns of a rotated block.
    pub(super) block: Option<usize>,
}

/// Some rows of `x`, from `first` on, as F32.
pub(super) struct PrepareRows<'a, T> {
    pub(super) x: &'a [T],
    pub(super) rows: Rows,
    pub(super) first: usize,
    pub(super) steps: Steps<'a>,
    /// `[rows][columns]`
    pub(super) to: &'a mut [f32],
    /// `[rows][outliers]`, rows `outlier_stride` apart.
    pub(super) outliers: &'a mut [T],
    pub(super) outlier_stride: usize,
}

impl<T: StoredFloat> Kernel for PrepareRows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Steps { factors, outliers, block } = self.steps;
        for (row, to) in self.to.chunks_exact_mut(self.rows.columns).enumerate() {
            let x = StoredRow(self.rows.row(self.x, self.first + row));
            for (vector, to) in to.chunks_mut(LANES).enumerate() {
                let mut y = x.at(isa, vector * LANES);
                if let Some(factors) = factors {
                    y = isa.div(y, isa.load_partial(&factors[vector * LANES..]));
                }
                isa.store_partial(y, to);
            }
            if !outliers.is_empty() {
                let values = &mut self.outliers[row * self.outlier_stride..][..outliers.len()];
                for (columns, values) in outliers.chunks(LANES).zip(values.chunks_mut(LANES)) {
                    let mut kept = [0.0; LANES];
                    for (kept, &column) in kept.iter_mut().zip(columns) {
                        let y = usize::try_from(column).ok().and_then(|column| to.get(column));
                        *kept = y.copied().unwrap_or(0.0);
                    }
                    T::store_partial(isa, isa.load(&kept), values);
                }
                for &column in outliers {
                    if let Some(y) = usize::try_from(column).ok().and_then(|column| to.get_mut(column)) {
                        *y = 0.0;
                    }
                }
            }
            if let Some(block) = block {
                for block in to.chunks_exact_mut(block) {
                    rotate(block);
                }
            }
        }
    }
}

/// The normalised Walsh-Hadamard transform, by halves of 1, 2, 4 ...: sums and differences, which all tiers round alike.
#[inline(always)]
fn rotate(block: &mut [f32]) {
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
