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
    groups::{GroupWiseWeights, LaneFactors, PIECE, pieces},
    int8::{Int8Rows, int8_tile},
    outliers::Outliers,
    pack::{PANEL, Place},
    product::{Product, TILE, TileSums},
    scaled::RowScales,
};
use crate::{
    cost,
    simd::{Isa, Kernel, LANES},
};

/// Signed activations, `[rows][k]` with rows `stride` apart, the sums of their steps and their scales.
#[derive(Clone, Copy)]
pub(super) struct GroupWiseRows<'a> {
    pub(super) values: &'a [i8],
    pub(super) rows: usize,
    pub(super) stride: usize,
    /// Values of K of a step.
    pub(super) step: usize,
    /// `[steps][rows]`
    pub(super) sums: &'a [i32],
    pub(super) scales: RowScales<'a>,
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
        let (k, panel, count) = (weights.k(), tile.panels.start, tile.rows.len());
        let sums = &mut sums[..count];
        sums.fill([[0.0; LANES]; 2]);
        // The tile's rows by themselves, from each piece of K on. They begin at 0, not at -128 times their sum: that is
        // taken from the whole step.
        let mut own = tile.clone();
        own.rows = 0..count;
        let values = &rows.values[tile.rows.start * rows.stride..];
        let mut room = [0; PIECE * PANEL];
        for (index, start) in (0..k).step_by(rows.step).enumerate() {
            let end = k.min(start + rows.step);
            let mut exact = [[[0i32; LANES]; 2]; TILE];
            for piece in pieces(start..end) {
                let x = Int8Rows::new(&values[piece.start..], count, rows.stride, piece.len(), &[0; TILE]);
                let bytes = weights.bytes(isa, panel, piece, &mut room);
                let mut part = [[[0; LANES]; 2]; TILE];
                int8_tile(isa, &x, bytes, &own, &mut part);
                for (exact, part) in
                    exact.as_flattened_mut().iter_mut().zip(part.as_flattened()).take(2 * count)
                {
                    exact.iter_mut().zip(part).for_each(|(exact, part)| *exact = exact.wrapping_add(*part));
                }
            }
            let row_sums = &rows.sums[index * rows.rows..][tile.rows.clone()];
            let factors = weights.lane_factors(panel, start);
            let (scales, first) = (rows.scales, tile.rows.start);
            isa.call(AddStep { exact: &exact, row_sums, factors, scales, first, start, to: sums });
        }
        if !matches!(rows.scales, RowScales::PerGroup { .. }) {
            isa.call(ScaleRows { scales: rows.scales, first: tile.rows.start, sums });
        }
        if let Some(outliers) = outliers {
            isa.call(outliers.add(tile.rows.start, panel, sums));
        }
    }
}

/// Adds the sums of a step, scaled.
struct AddStep<'a> {
    /// 128 times the row's sum too large.
    exact: &'a [RowSums<i32>],
    /// Of each row of the tile.
    row_sums: &'a [i32],
    factors: LaneFactors<'a>,
    scales: RowScales<'a>,
    /// The first row.
    first: usize,
    /// The first value of K.
    start: usize,
    to: &'a mut [RowSums<f32>],
}

impl Kernel for AddStep<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let LaneFactors { scales: w_scales, mins, .. } = self.factors;
        for (row, (to, exact)) in self.to.iter_mut().zip(self.exact).enumerate() {
            let row_sum = self.row_sums[row];
            let excess = isa.splat_i32(row_sum.wrapping_mul(128));
            for (vector, (to, exact)) in to.iter_mut().zip(exact).enumerate() {
                let part = vector * LANES..(vector + 1) * LANES;
                let exact = isa.to_f32(isa.sub_i32(isa.load_i32(exact), excess));
                let mut term = isa.mul(exact, isa.load_partial(&w_scales[part.clone()]));
                if let Some(mins) = mins {
                    let row_sum = isa.to_f32(isa.splat_i32(row_sum));
                    term = isa.add(term, isa.mul(row_sum, isa.load_partial(&mins[part])));
                }
                if let RowScales::PerGroup { size, .. } = self.scales {
                    let scale = self.scales.at(self.first + row, self.start / size);
                    term = isa.mul(term, isa.splat(scale));
                }
                isa.store(isa.add(isa.load(to), term), to);
            }
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
