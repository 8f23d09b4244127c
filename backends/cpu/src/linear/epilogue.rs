//! What happens to a tile's accumulators on their way to memory.
//!
//! An epilogue is inlined into the tile, which calls it once a row and panel. It sees both vectors of a panel, so that
//! a gated activation finds gate and up side by side (see [`Columns::Gated`](super::pack::Columns::Gated)).
//!
//! The one order in which an INT8 product becomes a float, for every row count, tier and thread:
//!
//! ```text
//! y = (f32(acc) * w_scale[n]) * a_scale[m]     then + bias[n]     then the activation     then the soft-cap
//! then + residual
//! ```
//!
//! Each of these rounds by itself; no multiply-add is used, so that both tiers give the same bits.

use super::{output::OutputRows, pack::Place};
use crate::simd::{Isa, LANES};

/// Takes the exact sums of an INT8 tile.
pub(crate) trait Int8Epilogue {
    /// Takes one row of a panel: `acc[0]` its lanes 0 to 15, `acc[1]` its lanes 16 to 31. Implementations are
    /// `#[inline(always)]`.
    fn store<I: Isa>(&mut self, isa: I, row: usize, place: Place, acc: [I::I32; 2]);
}

/// Takes the sums of a float tile.
pub(crate) trait FloatEpilogue {
    /// As [`Int8Epilogue::store`].
    fn store<I: Isa>(&mut self, isa: I, row: usize, place: Place, acc: [I::F32; 2]);
}

/// The sums themselves, `[rows][N]` `i32`.
pub(crate) struct Int8ToI32<'a> {
    /// Where they go.
    pub(crate) out: OutputRows<'a, i32>,
}

impl Int8Epilogue for Int8ToI32<'_> {
    #[inline(always)]
    fn store<I: Isa>(&mut self, isa: I, row: usize, place: Place, acc: [I::I32; 2]) {
        let out = self.out.segment(row, place.column, place.valid);
        let (first, second) = out.split_at_mut(place.valid.min(LANES));
        isa.store_i32_partial(acc[0], first);
        isa.store_i32_partial(acc[1], second);
    }
}
