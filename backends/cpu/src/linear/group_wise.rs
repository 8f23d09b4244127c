//! INT8 activations times integer weights whose scales change along K.
//!
//! K is cut into steps, within which neither weights nor activations change their scale. The sums of a step are exact in
//! `i32`; then, each operation rounded by itself and the same in all tiers:
//!
//! ```text
//! term = f32(sum of q_x * q_w) * w_scale[n, g]
//! term = term + f32(sum of q_x) * w_min[n, g]        where there are minima
//! term = term * a_scale[m, g]                        where activations have scales along K
//! y = y + term                                       steps in ascending K, y begun at 0
//! y = y * a_scale[m]                                 after the last step, where a row has one scale
//! y = y + outliers
//! ```

use super::{
    blocks::Tile,
    epilogue::RowSums,
    group_wise_tile::group_wise_tile,
    groups::GroupWiseWeights,
    outliers::Outliers,
    pack::Place,
    product::{Product, TileSums},
    scaled::RowScales,
};
use crate::{
    cost,
    simd::{Isa, Kernel},
};

/// Signed activations, `[rows][k]` with rows `stride` apart, the sums of their steps and their scales.
#[derive(Clone, Copy)]
pub(super) struct GroupWiseRows<'a> {
    pub(super) values: &'a [i8],
    pub(super) rows: usize,
    pub(super) stride: usize,
    /// Values of K of a step.
    pub(super) step: usize,
    /// `[steps][rows]`: each step's `Σ q_x`, times [`sum_factor`](Self::sum_factor).
    pub(super) sums: &'a [i32],
    pub(super) scales: RowScales<'a>,
}

impl GroupWiseRows<'_> {
    /// Sums of a step are multiplied with minima, or are what accumulators start with: with what unsigned weights make
    /// too much, negated. Minima come without: their elements are unsigned.
    pub(super) fn sum_factor(weights: &GroupWiseWeights<'_>) -> i32 {
        if weights.has_mins() { 1 } else { -weights.excess() }
    }
}

/// Rows times weights, scales included, and what is added in float.
#[derive(Clone, Copy)]
pub(super) struct GroupWiseProduct<'a> {
    pub(super) rows: GroupWiseRows<'a>,
    pub(super) weights: GroupWiseWeights<'a>,
    pub(super) outliers: Option<Outliers<'a>>,
}

impl Product for GroupWiseProduct<'_> {
    type Sum = f32;

    fn rows(&self) -> usize {
        self.rows.rows
    }

    fn row_bytes(&self) -> usize {
        self.weights.k()
    }

    fn panels(&self) -> usize {
        self.weights.panels()
    }

    fn panel_cost(&self) -> usize {
        cost::group_wise_panel(self.rows.rows, self.weights.k(), self.weights.panel_bytes())
    }

    fn place(&self, panel: usize) -> Place {
        self.weights.place(panel)
    }

    fn tile<I: Isa>(&self, isa: I, tile: &Tile, sums: &mut TileSums<f32>) {
        let Self { rows, weights, outliers } = self;
        let sums = &mut sums[..tile.rows.len()];
        group_wise_tile(isa, rows, weights, tile, sums);
        if !matches!(rows.scales, RowScales::PerGroup { .. }) {
            isa.call(ScaleRows { scales: rows.scales, first: tile.rows.start, sums });
        }
        if let Some(outliers) = outliers {
            isa.call(outliers.add(tile.rows.start, tile.panels.start, sums));
        }
    }
}

/// Multiplies each row with its scale.
struct ScaleRows<'a> {
    scales: RowScales<'a>,
    /// The first row.
    first: usize,
    sums: &'a mut [RowSums<f32>],
}

impl Kernel for ScaleRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        for (row, sums) in self.sums.iter_mut().enumerate() {
            let scale = isa.splat(self.scales.at(self.first + row, 0));
            for sums in sums {
                isa.store(isa.mul(isa.load(sums), scale), sums);
            }
        }
    }
}

#[cfg(test)]
#[path = "group_wise_tests.rs"]
mod tests;
