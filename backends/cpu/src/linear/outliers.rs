//! Columns kept in float beside an integer product: `y = y + Σ_j x[t, j] · w[n, j]`.

use super::{epilogue::RowSums, pack::PANEL};
use crate::simd::{Isa, Kernel, LANES};

/// Activations and weights of the outlier columns.
#[derive(Clone, Copy)]
pub(super) struct Outliers<'a> {
    /// `[rows][columns]`
    pub(super) x: &'a [f32],
    pub(super) columns: usize,
    /// Panels of `[columns][32]`, as those of float weights.
    pub(super) weights: &'a [f32],
}

impl<'a> Outliers<'a> {
    /// Adds the products of a tile's rows, from `first` on, with one panel.
    pub(super) fn add(&self, first: usize, panel: usize, sums: &'a mut [RowSums<f32>]) -> AddOutliers<'a> {
        let len = self.columns * PANEL;
        AddOutliers {
            x: &self.x[first * self.columns..],
            columns: self.columns,
            weights: &self.weights[panel * len..][..len],
            sums,
        }
    }
}

/// Adds one chain of multiply-adds, in the order of the columns, to each sum.
pub(super) struct AddOutliers<'a> {
    x: &'a [f32],
    columns: usize,
    weights: &'a [f32],
    sums: &'a mut [RowSums<f32>],
}

impl Kernel for AddOutliers<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        for (x, sums) in self.x.chunks_exact(self.columns).zip(self.sums) {
            let mut acc = [isa.splat(0.0); 2];
            for (&x, w) in x.iter().zip(self.weights.chunks_exact(PANEL)) {
                let x = isa.splat(x);
                let (first, second) = w.split_at(LANES);
                acc[0] = isa.mul_add(x, isa.load_partial(first), acc[0]);
                acc[1] = isa.mul_add(x, isa.load_partial(second), acc[1]);
            }
            for (acc, sums) in acc.into_iter().zip(sums) {
                isa.store(isa.add(isa.load(sums), acc), sums);
            }
        }
    }
}
