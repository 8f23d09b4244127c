//! INT8 tiles of many rows, which a matrix unit multiplies.

use super::*;
use crate::simd::matrix::{DEPTH, Panel};

/// Whether a product goes to a matrix unit: it has more rows than a tile of vectors, and K fills a step of the unit. Fewer
/// rows wait for the weights to be read, whoever multiplies; the last rows of a product, if they are so few, too.
pub(super) const fn worth(rows: usize, k: usize) -> bool {
    rows > TILE && k >= DEPTH
}

/// What [`int8_tile`] computes, for up to [`TALL`](super::super::product::TALL) rows.
pub(super) fn tall_tile(
    matrix: Matrix,
    rows: &Int8Rows<'_>,
    panel: &[u8],
    tile: &Tile,
    sums: &mut TileSums<i32>,
) {
    let (k, stride) = (rows.k, rows.stride);
    let sums = &mut sums[..tile.rows.len()];
    for (sums, sum) in sums.iter_mut().zip(&rows.sums[tile.rows.clone()]) {
        *sums = [[sum.wrapping_mul(-128); LANES]; 2];
    }
    let values = &rows.values[tile.rows.start * stride..];
    matrix.add(values, stride, Panel { bytes: panel, k }, sums);
}

#[cfg(test)]
#[path = "int8_tall_tests.rs"]
mod tests;
