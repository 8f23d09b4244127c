//! F16 and BF16 activations times packed float weights, without scratch memory.
//!
//! Pieces of a tile's rows are widened onto the stack and multiplied as F32 rows are, each carrying on the chains of the
//! one before it. So the result has the bits of rows that were widened beforehand.

use super::{
    blocks::Tile,
    float::{FloatRows, FloatWeights, float_tile},
    pack::{PANEL, Place},
    product::{Product, TILE, TileSums},
};
use crate::simd::{Isa, Kernel, LANES, StoredFloat};
use std::ops::Range;

/// Columns of a piece: with the rows of a tile, 6 KB.
const PIECE: usize = 128;

/// Rows, `[rows][k]` and `stride` apart, times weights.
#[derive(Clone, Copy)]
pub(crate) struct WidenedProduct<'a, X, W> {
    values: &'a [X],
    rows: usize,
    stride: usize,
    weights: FloatWeights<'a, W>,
}

impl<'a, X: StoredFloat, W: StoredFloat> WidenedProduct<'a, X, W> {
    /// # Panics
    /// Later, where `values` is too short.
    pub(crate) fn new(values: &'a [X], rows: usize, stride: usize, weights: FloatWeights<'a, W>) -> Self {
        Self { values, rows, stride, weights }
    }
}

impl<X: StoredFloat, W: StoredFloat> Product for WidenedProduct<'_, X, W> {
    type Sum = f32;

    fn rows(&self) -> usize {
        self.rows
    }

    fn row_bytes(&self) -> usize {
        self.weights.k() * size_of::<X>()
    }

    fn panels(&self) -> usize {
        self.weights.panels()
    }

    fn panel_cost(&self) -> usize {
        // 16 bytes or 60 multiply-adds a nanosecond.
        let products = self.weights.k() * PANEL;
        (products * size_of::<W>() / 16).max(self.rows * products / 60)
    }

    fn place(&self, panel: usize) -> Place {
        self.weights.place(panel)
    }

    fn tile<I: Isa>(&self, isa: I, tile: &Tile, sums: &mut TileSums<f32>) {
        let (k, panel) = (self.weights.k(), self.weights.panel(tile.panels.start));
        let count = tile.rows.len();
        sums[..count].fill([[0.0; LANES]; 2]);
        let mut room = [0.0; TILE * PIECE];
        for start in (0..k).step_by(PIECE) {
            let columns = start..k.min(start + PIECE);
            let widened = &mut room[..count * columns.len()];
            isa.call(Widen {
                from: &self.values[tile.rows.start * self.stride..],
                stride: self.stride,
                columns: columns.clone(),
                to: &mut *widened,
            });
            let rows = FloatRows::new(widened, count, columns.len(), columns.len());
            let panel = &panel[columns.start * PANEL..columns.end * PANEL];
            float_tile(isa, &rows, panel, &tile.of_rows(0..count), sums);
        }
    }
}

/// Widens some columns of rows.
struct Widen<'a, X> {
    from: &'a [X],
    stride: usize,
    columns: Range<usize>,
    /// `[rows][columns]`
    to: &'a mut [f32],
}

impl<X: StoredFloat> Kernel for Widen<'_, X> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { from, stride, columns, to } = self;
        for (row, to) in to.chunks_exact_mut(columns.len()).enumerate() {
            let from = &from[row * stride..][columns.clone()];
            for (from, to) in from.chunks(LANES).zip(to.chunks_mut(LANES)) {
                isa.store_partial(X::load_partial(isa, from), to);
            }
        }
    }
}
