//! W8A8: INT8 activations times packed INT8 weights, summed exactly in `i32`.
//!
//! The weights are stored as `w + 128`, unsigned, so that one instruction multiplies four of them with four signed
//! activations that lie as the quantising operator wrote them. The sum is then `128 * sum(a)` too large, which the
//! accumulators start with, negated: exact modulo 2^32, hence exact where the true sum fits `i32`.
//!
//! Tile: up to 12 rows x 32 columns over all of K (24 accumulators of 32 registers). Few rows would wait for the
//! previous sum, so they keep several sets of accumulators and add them at the end. Where there is a matrix unit, more rows
//! than that go to it (`tall`).
//!
//! Accumulators stay in registers only while every loop over them is unrolled: its length is a constant and its body
//! short. One that is not turns them into memory, and the tile is three times as slow and still right. Hence a tile
//! does nothing but sum, and what follows reads the sums from an array of their own.

#[path = "int8_tall.rs"]
mod tall;

use std::ops::Range;

use super::{
    blocks::{Prefetch, Tile},
    epilogue::RowSums,
    pack::{Columns, PANEL, Place, int8_panel_len},
    product::{Product, TILE, TileSums},
    zero_points::{Correct, ZeroPoints},
};
use crate::{
    cost,
    simd::{Isa, Kernel, LANES, matrix::Matrix},
};

/// Bytes of a panel that four values of K need.
const QUAD: usize = 4 * PANEL;

/// Signed activations, `[rows][k]` with rows `stride` apart, and each row's sum: of all of K, or of one group of it after
/// another.
#[derive(Clone, Copy)]
pub(crate) struct Int8Rows<'a> {
    values: &'a [i8],
    stride: usize,
    rows: usize,
    k: usize,
    /// `[groups][rows]`
    sums: &'a [i32],
}

impl<'a> Int8Rows<'a> {
    /// `sums` are what [`SumRows`] makes.
    ///
    /// # Panics
    /// Where `values` is too short, or there are not `rows` sums a group.
    pub(crate) fn new(values: &'a [i8], rows: usize, stride: usize, k: usize, sums: &'a [i32]) -> Self {
        let needed = rows.checked_sub(1).map_or(Some(0), |last| last.checked_mul(stride)?.checked_add(k));
        assert!(
            needed.is_some_and(|n| n <= values.len()),
            "{rows} rows of {k}, {stride} apart, in {} values",
            values.len()
        );
        assert!(sums.len() >= rows, "{} sums of {rows} rows", sums.len());
        Self { values, stride, rows, k, sums }
    }

    /// The same rows, of these columns only, which are group number `group`.
    fn columns(&self, columns: Range<usize>, group: usize) -> Self {
        let values = self.values.get(columns.start..).unwrap_or_default();
        let sums = &self.sums[group * self.rows..][..self.rows];
        Self::new(values, self.rows, self.stride, columns.len(), sums)
    }

    fn row(&self, row: usize) -> &'a [i8] {
        &self.values[row * self.stride..][..self.k]
    }
}

/// Packed INT8 weights of `n` channels.
#[derive(Clone, Copy)]
pub(crate) struct Int8Weights<'a> {
    bytes: &'a [u8],
    k: usize,
    n: usize,
    columns: Columns,
}

impl<'a> Int8Weights<'a> {
    /// All panels, in order, as [`pack_int8_panel`](super::pack::pack_int8_panel) made them.
    ///
    /// # Panics
    /// Where `bytes` is too short.
    pub(crate) fn new(bytes: &'a [u8], n: usize, k: usize, columns: Columns) -> Self {
        let needed = columns.panels(n).checked_mul(int8_panel_len(k));
        assert!(needed.is_some_and(|needed| needed <= bytes.len()), "{n} x {k} weights in {}", bytes.len());
        Self { bytes, k, n, columns }
    }

    fn panel(&self, panel: usize) -> &'a [u8] {
        let len = int8_panel_len(self.k);
        &self.bytes[panel * len..][..len]
    }
}

/// Writes sums of rows of `values` (`[rows][k]`, rows `stride` apart): `sums` are those from number `first` on of
/// `[groups][rows]`.
pub(crate) struct SumRows<'a> {
    /// The activations.
    pub(crate) values: &'a [i8],
    /// Elements from a row to the next.
    pub(crate) stride: usize,
    /// Rows.
    pub(crate) rows: usize,
    /// Values of a row.
    pub(crate) k: usize,
    /// Values of a group, K for one group.
    pub(crate) group: usize,
    /// What each is multiplied with, modulo 2^32.
    pub(crate) times: i32,
    /// The first sum.
    pub(crate) first: usize,
    /// One sum a row, of one group after another.
    pub(crate) sums: &'a mut [i32],
}

impl Kernel for SumRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let ones = isa.splat_i32(0x0101_0101);
        for (place, sum) in (self.first..).zip(self.sums) {
            let (group, row) = (place / self.rows, place % self.rows);
            let (start, end) = (group * self.group, self.k.min((group + 1) * self.group));
            let row = &self.values[row * self.stride..][..self.k];
            let (blocks, rest) =
                bytemuck::cast_slice::<i8, u8>(&row[start..end]).as_chunks::<{ 4 * LANES }>();
            let mut total = isa.splat_i32(0);
            for block in blocks {
                total = isa.dot_u8_i8(total, ones, isa.load_bytes(block));
            }
            let mut tail = [0; 4 * LANES];
            tail[..rest.len()].copy_from_slice(rest);
            let total = isa.sum_i32(isa.dot_u8_i8(total, ones, isa.load_bytes(&tail)));
            *sum = total.wrapping_mul(self.times);
        }
    }
}

/// Rows times weights, in exact sums.
#[derive(Clone, Copy)]
pub(crate) struct Int8Product<'a> {
    rows: Int8Rows<'a>,
    weights: Int8Weights<'a>,
    zero_points: ZeroPoints<'a>,
    matrix: Option<Matrix>,
}

impl<'a> Int8Product<'a> {
    /// # Panics
    /// Where the two have another K.
    pub(crate) fn new(rows: Int8Rows<'a>, weights: Int8Weights<'a>) -> Self {
        assert_eq!(rows.k, weights.k, "activations and weights have the same K");
        Self { rows, weights, zero_points: ZeroPoints::default(), matrix: None }
    }

    /// With zero points, which are taken off the sums.
    pub(super) fn with_zero_points(mut self, zero_points: ZeroPoints<'a>) -> Self {
        self.zero_points = zero_points;
        self
    }

    /// With a matrix unit, where the tier has one.
    pub(super) fn with_matrix(mut self, matrix: Option<Matrix>) -> Self {
        self.matrix = matrix;
        self
    }

    /// The columns of each group of `size`, which is a multiple of 4.
    pub(super) fn groups(&self, size: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let k = self.rows.k;
        (0..k).step_by(size).map(move |start| start..k.min(start + size))
    }

    /// The sums of a tile over the columns of one group.
    pub(super) fn partial_tile<I: Isa>(
        &self,
        isa: I,
        columns: Range<usize>,
        group: usize,
        tile: &Tile,
        sums: &mut TileSums<i32>,
    ) {
        let panel = tile.panels.start;
        let weights = &self.weights.panel(panel)[columns.start * PANEL..][..int8_panel_len(columns.len())];
        let rows = self.rows.columns(columns, group);
        match self.matrix {
            Some(matrix) if tile.rows.len() > TILE => tall::tall_tile(matrix, &rows, weights, tile, sums),
            _ => int8_tile(isa, &rows, weights, tile, sums),
        }
        if self.zero_points.activations.is_some() || self.zero_points.weights.is_some() {
            isa.call(Correct {
                zero_points: self.zero_points,
                first: tile.rows.start,
                row_sums: &rows.sums[tile.rows.clone()],
                channels: self.channels(panel),
                sums,
            });
        }
    }

    /// The weight channels of each vector of a panel.
    pub(crate) fn channels(&self, panel: usize) -> [Range<usize>; 2] {
        let columns = self.weights.columns;
        columns.channels(columns.results(self.weights.n), self.place(panel))
    }
}

impl Product for Int8Product<'_> {
    type Sum = i32;

    fn rows(&self) -> usize {
        self.rows.rows
    }

    fn row_bytes(&self) -> usize {
        self.rows.k
    }

    fn panels(&self) -> usize {
        self.weights.columns.panels(self.weights.n)
    }

    fn panel_cost(&self) -> usize {
        cost::int8_panel(self.rows.rows, self.rows.k)
    }

    fn tall(&self) -> bool {
        self.matrix.is_some() && tall::worth(self.rows.rows, self.rows.k)
    }

    fn place(&self, panel: usize) -> Place {
        self.weights.columns.place(self.weights.n, panel)
    }

    fn tile<I: Isa>(&self, isa: I, tile: &Tile, sums: &mut TileSums<i32>) {
        self.partial_tile(isa, 0..self.rows.k, 0, tile, sums);
    }
}

/// Sets of accumulators of a tile. Eight or more sums in flight hide the instruction's latency of four cycles at two a
/// cycle, and a row has two.
pub(super) const fn sets(rows: usize) -> usize {
    match rows {
        1 => 8,
        2 | 3 => 4,
        4 | 5 => 2,
        _ => 1,
    }
}

/// The tiles that are compiled, by their rows, handed to another macro.
macro_rules! tiles {
    ($use:ident) => {
        $use!(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
    };
}

#[cfg(test)]
macro_rules! listed {
    ($($rows:literal),*) => { &[$($rows),*] };
}

#[cfg(test)]
pub(super) const TILES: &[usize] = tiles!(listed);

/// The sums of a tile's rows with one panel, by the number of rows: `Body<rows, accumulator sets>`. The panel is as long
/// as the rows are: all of K, or a group of it.
pub(super) fn int8_tile<I: Isa>(
    isa: I,
    rows: &Int8Rows<'_>,
    panel: &[u8],
    tile: &Tile,
    sums: &mut TileSums<i32>,
) {
    let prefetch = Prefetch::new(panel.as_ptr(), panel.len(), QUAD, tile);
    macro_rules! call {
        ($($rows:literal),*) => {
            match tile.rows.len() {
                $($rows => isa.call(Body::<$rows, { sets($rows) }> {
                    panel, rows, first: tile.rows.start, prefetch, sums,
                }),)*
                _ => unreachable!("tiles have 1 to 12 rows"),
            }
        };
    }
    tiles!(call);
}

struct Body<'a, const ROWS: usize, const SETS: usize> {
    panel: &'a [u8],
    rows: &'a Int8Rows<'a>,
    first: usize,
    prefetch: Prefetch,
    sums: &'a mut [RowSums<i32>],
}

impl<const ROWS: usize, const SETS: usize> Kernel for Body<'_, ROWS, SETS> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { panel, rows, first, mut prefetch, sums: to } = self;
        let (k, stride) = (rows.k, rows.stride);
        assert_eq!(panel.len(), int8_panel_len(k));
        let Some(sums) = rows.sums[first..].first_chunk::<ROWS>() else {
            unreachable!("a tile's rows are among the rows")
        };
        let mut acc = [[[isa.splat_i32(0); 2]; ROWS]; SETS];
        for (acc, sum) in acc[0].iter_mut().zip(sums) {
            *acc = [isa.splat_i32(sum.wrapping_mul(-128)); 2];
        }
        let quads = k / 4;
        let rounds = quads / SETS;
        // Few pointers keep the loop free of spills: rows r, r + 1 and r + 2 share one, two strides apart at most.
        let start = rows.values.as_ptr().wrapping_add(first * stride);
        let mut base: [*const i8; 4] = std::array::from_fn(|i| start.wrapping_add(3 * i * stride));
        let mut weights = panel.as_ptr();
        for _ in 0..rounds {
            for set in &mut acc {
                if ROWS > 4 {
                    prefetch.next(isa);
                }
                // SAFETY: `rounds * SETS` quads of 128 bytes lie in the panel and as many quads of 4 values in each
                // row, both checked above and in `Int8Rows::new`.
                unsafe { step(isa, weights, base, stride, set) };
                weights = weights.wrapping_add(QUAD);
                base = base.map(|p| p.wrapping_add(4));
            }
        }
        for _ in rounds * SETS..quads {
            // SAFETY: as above, the quads that did not fill a round.
            unsafe { step(isa, weights, base, stride, &mut acc[0]) };
            weights = weights.wrapping_add(QUAD);
            base = base.map(|p| p.wrapping_add(4));
        }
        if k % 4 != 0 {
            let mut rest = [[0; 4]; ROWS];
            for (r, quad) in rest.iter_mut().enumerate() {
                quad[..k % 4].copy_from_slice(&rows.row(first + r)[quads * 4..]);
            }
            let base = std::array::from_fn(|i| rest.as_ptr().wrapping_add(3 * i).cast());
            // SAFETY: the panel's last quad, and as many quads on the stack, 4 bytes apart.
            unsafe { step(isa, weights, base, 4, &mut acc[0]) };
        }
        let Some(to) = to.first_chunk_mut::<ROWS>() else {
            unreachable!("a tile's sums have room for its rows")
        };
        for (r, to) in to.iter_mut().enumerate() {
            for (v, to) in to.iter_mut().enumerate() {
                let mut total = acc[0][r][v];
                for set in &acc[1..] {
                    total = isa.add_i32(total, set[r][v]);
                }
                isa.store_i32(total, to);
            }
        }
    }
}

/// Four values of K for all rows of a tile.
///
/// # Safety
/// 128 bytes are readable at `weights` and 4 values at each row, row `r` being `r % 3` strides after `base[r / 3]`.
#[inline(always)]
unsafe fn step<I: Isa, const ROWS: usize>(
    isa: I,
    weights: *const u8,
    base: [*const i8; 4],
    stride: usize,
    acc: &mut [[I::I32; 2]; ROWS],
) {
    // SAFETY: the caller's promise.
    let w = unsafe { [&*weights.cast(), &*weights.add(4 * LANES).cast()] };
    let w = [isa.load_bytes(w[0]), isa.load_bytes(w[1])];
    for (r, acc) in acc.iter_mut().enumerate() {
        // SAFETY: the caller's promise; the read does not need alignment.
        let quad = unsafe { base[r / 3].add(r % 3 * stride).cast::<[i8; 4]>().read_unaligned() };
        let a = isa.splat_quad(quad);
        *acc = [isa.dot_u8_i8(acc[0], w[0], a), isa.dot_u8_i8(acc[1], w[1], a)];
    }
}

#[cfg(test)]
#[path = "int8_tests.rs"]
mod tests;
