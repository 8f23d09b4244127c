//! Products by tiles: what every weight format has in common.

use std::ops::Range;

use super::{
    blocks::{Tile, Tiling, for_each_tile},
    epilogue::{Epilogue, RowSums, Store},
    pack::Place,
};
use crate::simd::{Isa, Kernel, LANES};

/// The most rows times panels of a tile.
pub(crate) const TILE: usize = 12;

/// The most rows of a tall tile: what a matrix unit multiplies, and what weights are dequantised for at once.
pub(crate) const TALL: usize = 32;

/// Room for the sums of a tile; of its panel `p` (of `panels`) and row `r` (of `rows`) at `p * rows + r`.
pub(crate) type TileSums<T> = [RowSums<T>];

/// Rows times packed weights.
pub(crate) trait Product {
    /// What it sums in.
    type Sum: Copy + Default;

    /// Rows of the activations.
    fn rows(&self) -> usize;

    /// Bytes of a row of the activations.
    fn row_bytes(&self) -> usize;

    /// Panels of the weights, the unit in which tasks share a product.
    fn panels(&self) -> usize;

    /// About how many nanoseconds a panel takes.
    fn panel_cost(&self) -> usize;

    /// Panels that a tile takes at once.
    fn panels_per_tile<I: Isa>(&self) -> usize {
        1
    }

    /// Whether its tiles are tall: [`TALL`] rows of one panel.
    fn tall(&self) -> bool {
        false
    }

    /// Where a panel's results go.
    fn place(&self, panel: usize) -> Place;

    /// Writes the sums of a tile. Its loops are kernels, entered by [`Isa::call`]: it need not be inlined.
    fn tile<I: Isa>(&self, isa: I, tile: &Tile, sums: &mut TileSums<Self::Sum>);
}

/// Multiplies all rows with a range of panels.
pub(crate) struct Multiply<P, E> {
    /// What is multiplied.
    pub(crate) product: P,
    /// Which of the weights' panels.
    pub(crate) panels: Range<usize>,
    /// Takes the sums.
    pub(crate) epilogue: E,
}

impl<P: Product, E: Epilogue<Sum = P::Sum>> Kernel for Multiply<P, E> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        if self.product.tall() {
            // In a function of its own, so that others have no room for tall tiles on their stack.
            return isa.call(MultiplyTall(self));
        }
        let wide = self.product.panels_per_tile::<I>();
        let tiling = Tiling::new(self.product.rows(), self.product.row_bytes(), I::TILE_ROWS, wide);
        self.tiles::<I, TILE>(isa, tiling);
    }
}

/// [`Multiply`] by tall tiles.
struct MultiplyTall<P, E>(Multiply<P, E>);

impl<P: Product, E: Epilogue<Sum = P::Sum>> Kernel for MultiplyTall<P, E> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let tiling = Tiling::of_height(TALL, self.0.product.row_bytes(), 1);
        self.0.tiles::<I, TALL>(isa, tiling);
    }
}

impl<P: Product, E: Epilogue<Sum = P::Sum>> Multiply<P, E> {
    /// All tiles, which have sums for `ROOM` rows at most.
    #[inline(always)]
    fn tiles<I: Isa, const ROOM: usize>(self, isa: I, tiling: Tiling) {
        let Self { product, panels, mut epilogue } = self;
        let mut sums = [[[P::Sum::default(); LANES]; 2]; ROOM];
        let rows = product.rows();
        for_each_tile(tiling, rows, panels, |tile| {
            for panel in tile.panels.clone() {
                epilogue.prefetch(isa, tile.rows.clone(), product.place(panel));
            }
            product.tile(isa, &tile, &mut sums);
            let rows = tile.rows.len();
            for (sums, panel) in sums.chunks_exact(rows).zip(tile.panels) {
                let (place, first) = (product.place(panel), tile.rows.start);
                isa.call(Store { epilogue: &mut epilogue, first, place, sums });
            }
        });
    }
}
