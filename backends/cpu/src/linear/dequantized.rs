//! Float activations times integer weights: `y = Σ x · w` with `w = (q - zero) · scale`, or `q · scale + min`, in F32.
//!
//! Pieces of a panel are dequantised onto the stack and multiplied as F32 weights are, each carrying on the chains of the
//! one before it. So the result has the bits of a layer whose F32 weights were made in the same way beforehand.

use super::{
    blocks::Tile,
    float::{FloatRows, float_tile},
    groups::{Dequantize, GroupWiseWeights, PIECE, pieces},
    pack::{PANEL, Place},
    product::{Product, TileSums},
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

    fn place(&self, panel: usize) -> Place {
        self.weights.place(panel)
    }

    fn tile<I: Isa>(&self, isa: I, tile: &Tile, sums: &mut TileSums<f32>) {
        let (k, group, panel) = (self.weights.k(), self.weights.group_size(), tile.panels.start);
        sums[..tile.rows.len()].fill([[0.0; LANES]; 2]);
        let (mut bytes_room, mut floats) = ([0; PIECE * PANEL], [0.0; PIECE * PANEL]);
        for start in (0..k).step_by(group) {
            let end = k.min(start + group);
            for piece in pieces(start..end) {
                let bytes = self.weights.bytes(isa, panel, piece.clone(), &mut bytes_room);
                let factors = self.weights.lane_factors(panel, start);
                isa.call(Dequantize { bytes, factors, to: &mut floats });
                let floats = &floats[..piece.len() * PANEL];
                float_tile(isa, &self.rows.piece(piece), floats, tile, sums);
            }
        }
    }
}
