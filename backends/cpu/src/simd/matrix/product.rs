//! Rows of signed bytes times a panel of unsigned ones, cut into tiles.
//!
//! Up to 32 rows at once: four tiles of sums stay in registers over all of K, and each step of 64 values loads two tiles of
//! rows and two of the panel for four multiplications. With 16 rows or fewer the lower half is left out.

use super::{
    LANES, Tiles,
    config::{Config, ROW_BYTES, ROWS},
};

/// Values of K of a step: what a row of a tile holds.
pub(crate) const DEPTH: usize = ROW_BYTES;

/// Bytes from a row of sums to the next, and from four values of K of a panel to the next.
const WIDTH: usize = 4 * 2 * LANES;

/// A panel of `k` values of 32 columns, `[ceil(k / 4)][32][4]`.
#[derive(Clone, Copy)]
pub(crate) struct Panel<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) k: usize,
}

/// The tiles: of sums, the upper rows' first; of the rows; of the panel.
const SUMS: [usize; 4] = [0, 1, 2, 3];
const UPPER: usize = 4;
const LOWER: usize = 5;
const LEFT: usize = 6;
const RIGHT: usize = 7;

/// The shapes of the tiles for so many rows.
pub(super) const fn shapes(rows: usize) -> Config {
    let upper = if rows < ROWS { rows } else { ROWS };
    let lower = rows - upper;
    Config::new()
        .with(SUMS[0], upper)
        .with(SUMS[1], upper)
        .with(SUMS[2], lower)
        .with(SUMS[3], lower)
        .with(UPPER, upper)
        .with(LOWER, lower)
        .with(LEFT, ROWS)
        .with(RIGHT, ROWS)
}

/// Adds the products of as many rows as there are sums with a panel.
pub(super) fn add<T: Tiles>(
    unit: T::Unit,
    rows: &[i8],
    stride: usize,
    panel: Panel<'_>,
    sums: &mut [[[i32; LANES]; 2]],
) {
    assert_eq!(panel.bytes.len(), panel.k.div_ceil(4) * WIDTH, "a panel of K = {}", panel.k);
    let rows: &[u8] = bytemuck::cast_slice(rows);
    for (block, sums) in sums.chunks_mut(2 * ROWS).enumerate() {
        let rows = &rows[block * 2 * ROWS * stride..];
        if sums.len() > ROWS {
            add_block::<T, true>(unit, rows, stride, panel, sums);
        } else {
            add_block::<T, false>(unit, rows, stride, panel, sums);
        }
    }
}

/// The same for 32 rows at most; `BOTH` where there are lower ones.
fn add_block<T: Tiles, const BOTH: bool>(
    unit: T::Unit,
    rows: &[u8],
    stride: usize,
    Panel { bytes, k }: Panel<'_>,
    sums: &mut [[[i32; LANES]; 2]],
) {
    // SAFETY: no others are alive: nobody else makes any, and nothing that is called from here comes back here.
    let mut tiles = unsafe { T::configure(unit, shapes(sums.len())) };
    let to: &mut [u8] = bytemuck::cast_slice_mut(sums);
    let lower = ROWS * WIDTH;
    tiles.load::<{ SUMS[0] }>(to, WIDTH);
    tiles.load::<{ SUMS[1] }>(&to[WIDTH / 2..], WIDTH);
    if BOTH {
        tiles.load::<{ SUMS[2] }>(&to[lower..], WIDTH);
        tiles.load::<{ SUMS[3] }>(&to[lower + WIDTH / 2..], WIDTH);
    }
    let (steps, rest) = (k / DEPTH, k % DEPTH);
    for at in 0..steps {
        step::<T, BOTH>(&mut tiles, &rows[at * DEPTH..], stride, &bytes[at * STEP..]);
    }
    if rest > 0 {
        // Padded, for neither may be read beyond its end: zeros in the rows, whatever they are multiplied with.
        let (mut padded, mut last) = ([[0; DEPTH]; 2 * ROWS], [0; STEP]);
        for (row, padded) in padded.iter_mut().enumerate().take(to.len() / WIDTH) {
            padded[..rest].copy_from_slice(&rows[row * stride + steps * DEPTH..][..rest]);
        }
        let bytes = &bytes[steps * STEP..];
        last[..bytes.len()].copy_from_slice(bytes);
        step::<T, BOTH>(&mut tiles, padded.as_flattened(), DEPTH, &last);
    }
    tiles.store::<{ SUMS[0] }>(to, WIDTH);
    tiles.store::<{ SUMS[1] }>(&mut to[WIDTH / 2..], WIDTH);
    if BOTH {
        tiles.store::<{ SUMS[2] }>(&mut to[lower..], WIDTH);
        tiles.store::<{ SUMS[3] }>(&mut to[lower + WIDTH / 2..], WIDTH);
    }
}

/// Bytes of a panel that a step takes.
const STEP: usize = ROWS * WIDTH;

/// 64 values of K for all rows and columns.
#[inline(always)]
fn step<T: Tiles, const BOTH: bool>(tiles: &mut T, rows: &[u8], stride: usize, panel: &[u8]) {
    tiles.load::<LEFT>(panel, WIDTH);
    tiles.load::<UPPER>(rows, stride);
    tiles.multiply::<{ SUMS[0] }, UPPER, LEFT>();
    tiles.load::<RIGHT>(&panel[WIDTH / 2..], WIDTH);
    tiles.multiply::<{ SUMS[1] }, UPPER, RIGHT>();
    if BOTH {
        tiles.load::<LOWER>(&rows[ROWS * stride..], stride);
        tiles.multiply::<{ SUMS[2] }, LOWER, LEFT>();
        tiles.multiply::<{ SUMS[3] }, LOWER, RIGHT>();
    }
}
