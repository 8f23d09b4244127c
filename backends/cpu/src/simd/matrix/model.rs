//! Tile registers in plain code, for tests: what the manual says of the instructions, faults included.

use super::{
    Config, Tiles,
    config::{ROW_BYTES, ROWS},
};
use std::cell::Cell;

/// A model without a fault.
pub(super) const RIGHT: u8 = 0;
/// Faults that a self-test must notice.
pub(super) const FAULTS: [u8; 5] = [UNSIGNED_ROWS, SIGNED_PANEL, LOST_ROW, FRESH_SUMS, SATURATED];
pub(super) const UNSIGNED_ROWS: u8 = 1;
pub(super) const SIGNED_PANEL: u8 = 2;
pub(super) const LOST_ROW: u8 = 3;
pub(super) const FRESH_SUMS: u8 = 4;
pub(super) const SATURATED: u8 = 5;

thread_local! {
    /// Whether this thread's registers are configured.
    static ALIVE: Cell<bool> = const { Cell::new(false) };
}

/// Eight tiles, with one `FAULT`.
pub(super) struct ModelTiles<const FAULT: u8> {
    config: Config,
    tiles: [[[u8; ROW_BYTES]; ROWS]; 8],
}

impl<const FAULT: u8> Tiles for ModelTiles<FAULT> {
    type Unit = ();

    unsafe fn configure((): (), config: Config) -> Self {
        assert!(!ALIVE.replace(true), "one set of registers a thread");
        assert_eq!(config.0[0], 1, "the palette");
        assert!(config.0[1..16].iter().all(|&byte| byte == 0), "no row to begin at, and nothing reserved");
        assert!(config.0[32..48].iter().chain(&config.0[56..]).all(|&byte| byte == 0), "eight tiles");
        for tile in 0..8 {
            let (rows, bytes) = (config.rows(tile), config.row_bytes(tile));
            assert!(rows <= ROWS && bytes <= ROW_BYTES, "tile {tile}: {rows} rows of {bytes} bytes");
            assert_eq!(rows == 0, bytes == 0, "tile {tile} is there or is not");
        }
        Self { config, tiles: [[[0; ROW_BYTES]; ROWS]; 8] }
    }

    fn load<const TILE: usize>(&mut self, from: &[u8], stride: usize) {
        let (rows, bytes) = self.shape(TILE);
        self.tiles[TILE] = [[0; ROW_BYTES]; ROWS];
        for (row, to) in self.tiles[TILE].iter_mut().enumerate().take(rows) {
            to[..bytes].copy_from_slice(&from[row * stride..][..bytes]);
        }
    }

    fn store<const TILE: usize>(&mut self, to: &mut [u8], stride: usize) {
        let (rows, bytes) = self.shape(TILE);
        for (row, from) in self.tiles[TILE].iter().enumerate().take(rows) {
            to[row * stride..][..bytes].copy_from_slice(&from[..bytes]);
        }
    }

    fn multiply<const C: usize, const A: usize, const B: usize>(&mut self) {
        assert!(C != A && C != B && A != B, "three tiles");
        let ((rows, bytes), (a_rows, a_bytes), (b_rows, b_bytes)) =
            (self.shape(C), self.shape(A), self.shape(B));
        assert_eq!((rows, bytes), (a_rows, b_bytes), "the result has A's rows and B's columns");
        assert!(a_bytes == 4 * b_rows && bytes % 4 == 0, "a row of B for four bytes of A");
        for row in 0..rows {
            for column in 0..bytes / 4 {
                let at = 4 * column..4 * column + 4;
                let mut sum = [0; 4];
                sum.copy_from_slice(&self.tiles[C][row][at.clone()]);
                let mut sum = if FAULT == FRESH_SUMS { 0 } else { i32::from_le_bytes(sum) };
                for k in 0..b_rows - usize::from(FAULT == LOST_ROW) {
                    let (a, b) = (&self.tiles[A][row][4 * k..][..4], &self.tiles[B][k][at.clone()]);
                    for (&a, &b) in a.iter().zip(b) {
                        let a = if FAULT == UNSIGNED_ROWS { i32::from(a) } else { i32::from(a as i8) };
                        let b = if FAULT == SIGNED_PANEL { i32::from(b as i8) } else { i32::from(b) };
                        let add = if FAULT == SATURATED { i32::saturating_add } else { i32::wrapping_add };
                        sum = add(sum, a * b);
                    }
                }
                self.tiles[C][row][at].copy_from_slice(&sum.to_le_bytes());
            }
        }
    }
}

impl<const FAULT: u8> ModelTiles<FAULT> {
    /// Rows and bytes of a tile that is there.
    fn shape(&self, tile: usize) -> (usize, usize) {
        let (rows, bytes) = (self.config.rows(tile), self.config.row_bytes(tile));
        assert!(rows > 0 && bytes > 0, "tile {tile} is not configured");
        (rows, bytes)
    }
}

impl<const FAULT: u8> Drop for ModelTiles<FAULT> {
    fn drop(&mut self) {
        ALIVE.set(false);
    }
}
