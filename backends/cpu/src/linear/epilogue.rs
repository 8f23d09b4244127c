//! What happens to a tile's sums on their way to memory.
//!
//! A tile writes its sums to the stack and its epilogue reads them there, so that tiles are compiled once, whatever
//! follows them. An epilogue sees both vectors of a panel, and with them gate and up of a gated layer side by side (see
//! [`Columns::Gated`](super::pack::Columns::Gated)).

use std::ops::Range;

use super::{output::OutputRows, pack::Place};
use crate::simd::{Isa, Kernel, LANES};

/// The sums of one row of a panel, two vectors.
pub(crate) type RowSums<T> = [[T; LANES]; 2];

/// Takes the sums of a tile.
pub(crate) trait Epilogue {
    /// What tiles sum in.
    type Sum: Copy + Default;

    /// Asks, before a tile is computed, for the lines that these rows of a panel will be written to. Those of large results lie
    /// beyond the second-level cache, and stores would wait for them.
    fn prefetch<I: Isa>(&self, _isa: I, _rows: Range<usize>, _place: Place) {}

    /// Takes one row of a panel. Implementations are `#[inline(always)]`.
    fn store<I: Isa>(&mut self, isa: I, row: usize, place: Place, sums: &RowSums<Self::Sum>);
}

/// Hands the rows of one panel of a tile to an epilogue.
pub(super) struct Store<'a, E: Epilogue> {
    pub(super) epilogue: &'a mut E,
    /// The first row.
    pub(super) first: usize,
    pub(super) place: Place,
    /// Of each row.
    pub(super) sums: &'a [RowSums<E::Sum>],
}

impl<E: Epilogue> Kernel for Store<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        for (row, sums) in self.sums.iter().enumerate() {
            self.epilogue.store(isa, self.first + row, self.place, sums);
        }
    }
}

/// The sums themselves, `[rows][N]` `i32`.
pub(crate) struct Int8ToI32<'a> {
    /// Where they go.
    pub(crate) out: OutputRows<'a, i32>,
}

impl Epilogue for Int8ToI32<'_> {
    type Sum = i32;

    #[inline(always)]
    fn prefetch<I: Isa>(&self, isa: I, rows: Range<usize>, place: Place) {
        self.out.prefetch(isa, rows, place.column, place.valid);
    }

    #[inline(always)]
    fn store<I: Isa>(&mut self, isa: I, row: usize, place: Place, sums: &RowSums<i32>) {
        let out = self.out.segment(row, place.column, place.valid);
        for (out, sums) in out.chunks_mut(LANES).zip(sums) {
            isa.store_i32_partial(isa.load_i32(sums), out);
        }
    }
}
