//! The shapes of tile registers, in the 64 bytes that the processor reads them from.

/// What the instruction LDTILECFG reads: byte 0 the palette, from byte 16 on each tile's bytes a row (16 bits), from byte
/// 48 on its rows. All others are 0.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Config(pub(super) [u8; 64]);

/// Rows of a tile register at most.
pub(super) const ROWS: usize = 16;
/// Bytes of a row at most.
pub(super) const ROW_BYTES: usize = 64;

impl Config {
    /// Palette 1, whose eight tiles have up to 16 rows of 64 bytes; none has any yet.
    pub(super) const fn new() -> Self {
        let mut bytes = [0; 64];
        bytes[0] = 1;
        Self(bytes)
    }

    /// With so many full rows in a tile; none leaves the tile out.
    pub(super) const fn with(mut self, tile: usize, rows: usize) -> Self {
        assert!(tile < 8 && rows <= ROWS, "no such tile");
        if rows > 0 {
            self.0[16 + 2 * tile] = ROW_BYTES as u8;
            self.0[48 + tile] = rows as u8;
        }
        self
    }

    /// Bytes of a row of a tile.
    #[inline(always)]
    pub(super) const fn row_bytes(&self, tile: usize) -> usize {
        self.0[16 + 2 * tile] as usize | (self.0[17 + 2 * tile] as usize) << 8
    }

    /// Rows of a tile.
    #[inline(always)]
    pub(super) const fn rows(&self, tile: usize) -> usize {
        self.0[48 + tile] as usize
    }

    /// Whether `len` bytes have room for a tile's rows, `stride` apart.
    #[inline(always)]
    pub(super) const fn fits(&self, tile: usize, len: usize, stride: usize) -> bool {
        let before = self.rows(tile).saturating_sub(1).saturating_mul(stride);
        before.saturating_add(self.row_bytes(tile)) <= len
    }
}
