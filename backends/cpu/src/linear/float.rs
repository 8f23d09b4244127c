//! Float activations times packed F32, BF16 or F16 weights.
//!
//! Every result is one chain of multiply-adds in ascending K, whatever tile it is in, so a row has the same bits alone
//! and in any batch. BF16 and F16 weights widen to `f32` exactly on their way.
//!
//! Tile: up to 12 rows x 32 columns. Few rows take several panels at once, since one chain alone would wait for
//! itself.

use std::ops::Range;

use super::{
    blocks::{Prefetch, Tile},
    epilogue::RowSums,
    pack::{Columns, PANEL, Place, float_panel_len},
    product::{Product, TileSums},
};
use crate::{
    cost,
    simd::{Isa, Kernel, LANES, StoredFloat},
};

/// Activations, `[rows][k]` with rows `stride` apart.
#[derive(Clone, Copy)]
pub(crate) struct FloatRows<'a> {
    values: &'a [f32],
    rows: usize,
    stride: usize,
    k: usize,
}

impl<'a> FloatRows<'a> {
    /// # Panics
    /// Where `values` is too short.
    pub(crate) fn new(values: &'a [f32], rows: usize, stride: usize, k: usize) -> Self {
        let needed = rows.checked_sub(1).map_or(Some(0), |last| last.checked_mul(stride)?.checked_add(k));
        assert!(
            needed.is_some_and(|n| n <= values.len()),
            "{rows} rows of {k}, {stride} apart, in {} values",
            values.len()
        );
        Self { values, rows, stride, k }
    }

    /// The number of rows.
    pub(super) fn len(&self) -> usize {
        self.rows
    }

    /// One row.
    ///
    /// # Panics
    /// Where there is no such row.
    #[inline(always)]
    pub(super) fn row(&self, row: usize) -> &'a [f32] {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        &self.values[row * self.stride..][..self.k]
    }

    /// The same rows, of values `k` only.
    ///
    /// # Panics
    /// Where they have no such values.
    pub(super) fn piece(&self, k: Range<usize>) -> Self {
        assert!(k.start <= k.end && k.end <= self.k, "{k:?} of {} values", self.k);
        Self { values: self.values.get(k.start..).unwrap_or(&[]), k: k.len(), ..*self }
    }
}

/// Packed float weights of `n` channels.
#[derive(Clone, Copy)]
pub(crate) struct FloatWeights<'a, T> {
    values: &'a [T],
    k: usize,
    n: usize,
    columns: Columns,
}

impl<'a, T: StoredFloat> FloatWeights<'a, T> {
    /// All panels, in order, as [`pack_float_panel`](super::pack::pack_float_panel) made them.
    ///
    /// # Panics
    /// Where `values` is too short.
    pub(crate) fn new(values: &'a [T], n: usize, k: usize, columns: Columns) -> Self {
        let needed = columns.panels(n).checked_mul(float_panel_len(k));
        assert!(needed.is_some_and(|needed| needed <= values.len()), "{n} x {k} weights in {}", values.len());
        Self { values, k, n, columns }
    }

    /// Elements of a row that they are multiplied with.
    pub(crate) fn k(&self) -> usize {
        self.k
    }

    /// How many panels there are.
    pub(super) fn panels(&self) -> usize {
        self.columns.panels(self.n)
    }

    /// Where a panel's results go.
    pub(super) fn place(&self, panel: usize) -> Place {
        self.columns.place(self.n, panel)
    }

    /// One panel.
    pub(super) fn panel(&self, panel: usize) -> &'a [T] {
        let len = float_panel_len(self.k);
        &self.values[panel * len..][..len]
    }
}

/// Rows times weights.
#[derive(Clone, Copy)]
pub(crate) struct FloatProduct<'a, T> {
    rows: FloatRows<'a>,
    weights: FloatWeights<'a, T>,
}

impl<'a, T: StoredFloat> FloatProduct<'a, T> {
    /// # Panics
    /// Where the two have another K.
    pub(crate) fn new(rows: FloatRows<'a>, weights: FloatWeights<'a, T>) -> Self {
        assert_eq!(rows.k, weights.k, "activations and weights have the same K");
        Self { rows, weights }
    }
}

impl<T: StoredFloat> Product for FloatProduct<'_, T> {
    type Sum = f32;

    fn rows(&self) -> usize {
        self.rows.rows
    }

    fn row_bytes(&self) -> usize {
        self.rows.k * size_of::<f32>()
    }

    fn panels(&self) -> usize {
        self.weights.panels()
    }

    fn panel_cost(&self) -> usize {
        cost::float_panel(self.rows.rows, self.rows.k, size_of::<T>())
    }

    fn panels_per_tile<I: Isa>(&self) -> usize {
        panels_at_once(self.rows.rows, I::TILE_ROWS)
    }

    fn place(&self, panel: usize) -> Place {
        self.weights.place(panel)
    }

    fn tile<I: Isa>(&self, isa: I, tile: &Tile, sums: &mut TileSums<f32>) {
        let len = float_panel_len(self.rows.k);
        let panels = &self.weights.values[tile.panels.start * len..][..tile.panels.len() * len];
        sums[..tile.rows.len() * tile.panels.len()].fill([[0.0; LANES]; 2]);
        float_tile(isa, &self.rows, panels, tile, sums);
    }
}

/// Panels of a tile. A multiply-add takes four cycles and two start in each, so eight sums in flight keep a core busy: a
/// row has two a panel. Tiles of two rows fill the registers of a tier that allows no more.
pub(super) const fn panels_at_once(rows: usize, tile_rows: usize) -> usize {
    match rows {
        1 => 4,
        2 | 3 if tile_rows >= 3 => 2,
        _ => 1,
    }
}

/// The tiles that are compiled, rows x panels, handed to another macro.
macro_rules! tiles {
    ($use:ident) => {
        $use!(
            1 x 4, 2 x 2, 3 x 2, 1 x 1, 2 x 1, 3 x 1, 4 x 1, 5 x 1, 6 x 1, 7 x 1, 8 x 1, 9 x 1, 10 x 1, 11 x 1, 12 x 1
        )
    };
}

#[cfg(test)]
macro_rules! listed {
    ($($rows:literal x $panels:literal),*) => { &[$(($rows, $panels)),*] };
}

#[cfg(test)]
pub(super) const TILES: &[(usize, usize)] = tiles!(listed);

/// Adds the products of a tile's rows and panels to its sums, by their numbers: `Body<rows, panels>`. The panels are as
/// long as the rows are: all of K, or the next piece of it, which carries on the same chains.
pub(super) fn float_tile<I: Isa, T: StoredFloat>(
    isa: I,
    rows: &FloatRows<'_>,
    panels: &[T],
    tile: &Tile,
    sums: &mut TileSums<f32>,
) {
    macro_rules! call {
        ($($rows:literal x $panels:literal),*) => {
            match (tile.rows.len(), tile.panels.len()) {
                $(($rows, $panels) => isa.call(Body::<_, $rows, $panels> { rows, panels, tile, sums }),)*
                _ => unreachable!("tiles have 1 to 12 rows"),
            }
        };
    }
    tiles!(call);
}

struct Body<'a, T, const ROWS: usize, const PANELS: usize> {
    rows: &'a FloatRows<'a>,
    /// Of all panels, one after the other.
    panels: &'a [T],
    tile: &'a Tile,
    sums: &'a mut [RowSums<f32>],
}

impl<T: StoredFloat, const ROWS: usize, const PANELS: usize> Kernel for Body<'_, T, ROWS, PANELS> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { rows, panels, tile, sums } = self;
        let (k, stride, first) = (rows.k, rows.stride, tile.rows.start);
        let len = float_panel_len(k);
        assert!(first + ROWS <= rows.rows);
        assert_eq!(panels.len(), PANELS * len);
        let mut prefetch =
            Prefetch::new(panels.as_ptr().cast(), size_of_val(panels), size_of::<[T; PANEL]>(), tile);
        let mut acc = [[[isa.splat(0.0); 2]; ROWS]; PANELS];
        for (sums, acc) in sums.chunks_exact(ROWS).zip(&mut acc) {
            for (sums, acc) in sums.iter().zip(acc) {
                *acc = [isa.load(&sums[0]), isa.load(&sums[1])];
            }
        }
        // Few pointers keep the loop free of spills: rows r, r + 1 and r + 2 share one, two strides apart at most.
        let start = rows.values.as_ptr().wrapping_add(first * stride);
        let mut base: [*const f32; 4] = std::array::from_fn(|i| start.wrapping_add(3 * i * stride));
        let mut at = panels.as_ptr();
        for _ in 0..k {
            if ROWS > 3 {
                prefetch.next(isa);
            }
            for (p, acc) in acc.iter_mut().enumerate() {
                // SAFETY: each of the `PANELS` panels has `k` rows of 32 weights, `len` apart, and each of the tile's
                // rows has `k` values: the slice above and `FloatRows::new`.
                unsafe { step(isa, at.wrapping_add(p * len), base, stride, acc) };
            }
            at = at.wrapping_add(PANEL);
            base = base.map(|p| p.wrapping_add(1));
        }
        for (sums, acc) in sums.chunks_exact_mut(ROWS).zip(&acc) {
            for (sums, acc) in sums.iter_mut().zip(acc) {
                isa.store(acc[0], &mut sums[0]);
                isa.store(acc[1], &mut sums[1]);
            }
        }
    }
}

/// One value of K for all rows of a tile.
///
/// # Safety
/// 32 weights are readable at `weights` and a value at each row, row `r` being `r % 3` strides after `base[r / 3]`.
#[inline(always)]
unsafe fn step<I: Isa, T: StoredFloat, const ROWS: usize>(
    isa: I,
    weights: *const T,
    base: [*const f32; 4],
    stride: usize,
    acc: &mut [[I::F32; 2]; ROWS],
) {
    // SAFETY: the caller's promise.
    let w = unsafe { [&*weights.cast(), &*weights.add(LANES).cast()] };
    let w = [T::load(isa, w[0]), T::load(isa, w[1])];
    for (r, acc) in acc.iter_mut().enumerate() {
        // SAFETY: the caller's promise.
        let a = isa.splat(unsafe { *base[r / 3].add(r % 3 * stride) });
        *acc = [isa.mul_add(a, w[0], acc[0]), isa.mul_add(a, w[1], acc[1])];
    }
}

#[cfg(test)]
#[path = "float_tests.rs"]
mod tests;
