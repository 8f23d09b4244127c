//! INT8 sums times their scales: `y = (f32(sum) * w_scale[n]) * a_scale[m]`, each product rounded by itself.

use super::{
    blocks::Tile,
    epilogue::RowSums,
    int8::Int8Product,
    pack::Place,
    product::{Product, TILE, TileSums},
};
use crate::simd::{Isa, Kernel, LANES};

/// An INT8 product with a scale a row and a scale a channel.
#[derive(Clone, Copy)]
pub(super) struct Scaled<'a> {
    pub(super) sums: Int8Product<'a>,
    /// `[rows]`
    pub(super) a_scale: &'a [f32],
    /// `[weight_rows]`
    pub(super) w_scale: &'a [f32],
}

impl Product for Scaled<'_> {
    type Sum = f32;

    fn rows(&self) -> usize {
        self.sums.rows()
    }

    fn row_bytes(&self) -> usize {
        self.sums.row_bytes()
    }

    fn panels(&self) -> usize {
        self.sums.panels()
    }

    fn panel_cost(&self) -> usize {
        self.sums.panel_cost()
    }

    fn place(&self, panel: usize) -> Place {
        self.sums.place(panel)
    }

    fn tile<I: Isa>(&self, isa: I, tile: &Tile, sums: &mut TileSums<f32>) {
        let mut exact = [[[0; LANES]; 2]; TILE];
        self.sums.tile(isa, tile, &mut exact);
        let channels = self.sums.channels(tile.panels.start);
        let a_scale = &self.a_scale[tile.rows.clone()];
        isa.call(Scale { sums: &exact, a_scale, w_scale: channels.map(|c| &self.w_scale[c]), to: sums });
    }
}

/// Scales the sums of a tile.
struct Scale<'a> {
    sums: &'a [RowSums<i32>],
    /// Of each row of the tile.
    a_scale: &'a [f32],
    /// Of the channels of each vector.
    w_scale: [&'a [f32]; 2],
    to: &'a mut [RowSums<f32>],
}

impl Kernel for Scale<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let w_scale = [isa.load_partial(self.w_scale[0]), isa.load_partial(self.w_scale[1])];
        for ((&a_scale, sums), to) in self.a_scale.iter().zip(self.sums).zip(self.to) {
            let a_scale = isa.splat(a_scale);
            for ((sums, to), w_scale) in sums.iter().zip(to).zip(w_scale) {
                let sums = isa.to_f32(isa.load_i32(sums));
                isa.store(isa.mul(isa.mul(sums, w_scale), a_scale), to);
            }
        }
    }
}
