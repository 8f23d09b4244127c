//! Float activations times integer weights: `y = Σ x · w` with `w = (q - zero) · scale`, or `q · scale + min`, in F32.
//!
//! Pieces of a panel are dequantised and multiplied as F32 weights are, each carrying on the chains of the one before it: on
//! the stack where many rows take what was made, in registers where few do ([`FewRows`]). So the result has the bits of a layer
//! whose F32 weights were made in the same way beforehand.

use std::ops::Range;

use super::{
    blocks::{Tile, even_height},
    dequantize::Dequantize,
    few_rows::{FEW, FewRows},
    float::{FloatRows, float_tile},
    groups::{GroupWiseWeights, PIECE, pieces},
    pack::{PANEL, Place, int8_panel_len},
    product::{Product, TILE, TileSums},
};
use crate::{
    cost,
    simd::{Isa, LANES},
};

/// Rows times weights.
#[derive(Clone, Copy)]
pub(super) struct DequantizedProduct<'a> {
    pub(super) rows: FloatRows<'a>,
    pub(super) weights: GroupWiseWeights<'a>,
}

impl Product for DequantizedProduct<'_> {
    type Sum = f32;

    fn rows(&self) -> usize {
        self.rows.len()
    }

    fn row_bytes(&self) -> usize {
        self.weights.k() * size_of::<f32>()
    }

    fn panels(&self) -> usize {
        self.weights.panels()
    }

    fn panel_cost(&self) -> usize {
        cost::dequantized_panel(self.rows.len(), self.weights.k(), self.weights.panel_bytes())
    }

    /// So that weights are dequantised once for as many rows as there is room for, whatever the registers hold.
    fn tall(&self) -> bool {
        self.rows.len() > TILE
    }

    fn place(&self, panel: usize) -> Place {
        self.weights.place(panel)
    }

    fn tile<I: Isa>(&self, isa: I, tile: &Tile, sums: &mut TileSums<f32>) {
        sums[..tile.rows.len()].fill([[0.0; LANES]; 2]);
        match (tile.rows.len() <= FEW, self.weights.is_int4()) {
            (true, false) => self.bytes_in_registers(isa, tile, sums),
            (true, true) => self.nibbles_in_registers(isa, tile, sums),
            (false, _) => self.on_the_stack(isa, tile, sums),
        }
    }
}

/// Each has a function of its own, since clearing memory on the stack that is not used would take as long as the product.
impl DequantizedProduct<'_> {
    /// The groups of K.
    fn groups(&self) -> impl Iterator<Item = Range<usize>> {
        let (k, group) = (self.weights.k(), self.weights.group_size());
        (0..k).step_by(group).map(move |start| start..k.min(start + group))
    }

    fn bytes_in_registers<I: Isa>(&self, isa: I, tile: &Tile, sums: &mut TileSums<f32>) {
        let panel = tile.panels.start;
        for group in self.groups() {
            let factors = self.weights.lane_factors(panel, group.start);
            let bytes = &self.weights.panel(panel)[group.start * PANEL..][..int8_panel_len(group.len())];
            FewRows { rows: &self.rows.piece(group), bytes, factors, tile, sums }.run(isa);
        }
    }

    fn nibbles_in_registers<I: Isa>(&self, isa: I, tile: &Tile, sums: &mut TileSums<f32>) {
        let panel = tile.panels.start;
        let mut room = [0; PIECE * PANEL];
        for piece in self.groups().flat_map(pieces) {
            let factors = self.weights.lane_factors(panel, piece.start);
            let bytes = self.weights.bytes(isa, panel, piece.clone(), &mut room);
            FewRows { rows: &self.rows.piece(piece), bytes, factors, tile, sums }.run(isa);
        }
    }

    fn on_the_stack<I: Isa>(&self, isa: I, tile: &Tile, sums: &mut TileSums<f32>) {
        let panel = tile.panels.start;
        let height = even_height(tile.rows.len(), I::TILE_ROWS);
        let (mut room, mut floats) = ([0; PIECE * PANEL], [0.0; PIECE * PANEL]);
        for piece in self.groups().flat_map(pieces) {
            let factors = self.weights.lane_factors(panel, piece.start);
            let bytes = self.weights.bytes(isa, panel, piece.clone(), &mut room);
            isa.call(Dequantize { bytes, factors, to: &mut floats });
            let (rows, floats) = (self.rows.piece(piece.clone()), &floats[..piece.len() * PANEL]);
            for (part, sums) in sums[..tile.rows.len()].chunks_mut(height).enumerate() {
                let first = tile.rows.start + part * height;
                float_tile(isa, &rows, floats, &tile.of_rows(first..first + sums.len()), sums);
            }
        }
    }
}
