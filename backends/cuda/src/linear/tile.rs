//! What a block of the tensor cores' kernels computes: the constants of tile.cuh.

use crate::launch::Launch;

/// What a block computes, and by how many warps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tile {
    /// Rows of the result.
    m: usize,
    /// Channels of the weights.
    n: usize,
    /// Bytes of a row that come to shared memory at a time.
    k: usize,
    /// Parts of K in shared memory: one is computed, the others come.
    stages: usize,
    /// Warps along M.
    warps_m: usize,
    /// Warps along N.
    warps_n: usize,
}

impl Tile {
    /// For the few rows of a decode step: weights are what is read, so there are many blocks, and many bytes under way.
    pub(super) const DECODE: Tile = Tile { m: 16, n: 32, k: 128, stages: 6, warps_m: 1, warps_n: 2 };
    /// For some dozens of rows.
    pub(super) const MIDDLE: Tile = Tile { m: 64, n: 64, k: 128, stages: 3, warps_m: 2, warps_n: 2 };
    /// For prefill.
    pub(super) const LARGE: Tile = Tile { m: 128, n: 128, k: 64, stages: 3, warps_m: 2, warps_n: 4 };
    /// All of them.
    pub(super) const ALL: [Tile; 3] = [Tile::DECODE, Tile::MIDDLE, Tile::LARGE];

    /// That for so many rows.
    pub(super) fn of(rows: usize) -> Self {
        match rows {
            0..=16 => Tile::DECODE,
            17..=64 => Tile::MIDDLE,
            _ => Tile::LARGE,
        }
    }

    /// The constants of a kernel's source.
    pub(super) fn constants(self, launch: Launch) -> Launch {
        launch
            .constant("BLOCK_M", self.m)
            .constant("BLOCK_N", self.n)
            .constant("BLOCK_K", self.k)
            .constant("STAGES", self.stages)
            .constant("WARPS_M", self.warps_m)
            .constant("WARPS_N", self.warps_n)
    }

    /// Blocks for so many rows and channels; a channel has `w_bits` bits where a row has 8.
    pub(super) fn blocks(self, launch: Launch, rows: usize, channels: usize, w_bits: usize) -> Launch {
        self.grid(launch, rows.div_ceil(self.m), channels).shared(self.parts(w_bits))
    }

    /// How many blocks are enough for rows of groups that end nobody knows where, and whether that is one for each row:
    /// `tile_of` in group_rows.cuh tells them apart.
    pub(super) fn groups(self, rows: usize, groups: usize) -> (usize, bool) {
        let of_groups = (rows / self.m).saturating_add(groups);
        if rows < of_groups { (rows, true) } else { (of_groups, false) }
    }

    /// So many blocks along the rows, each with a table of its rows behind what `blocks` gives it.
    pub(super) fn blocks_of_groups(
        self,
        launch: Launch,
        blocks: usize,
        channels: usize,
        w_bits: usize,
    ) -> Launch {
        self.grid(launch, blocks, channels).shared(self.parts(w_bits) + 8 * self.m)
    }

    fn grid(self, launch: Launch, blocks: usize, channels: usize) -> Launch {
        launch.grid([blocks, channels.div_ceil(self.n), 1]).block(32 * (self.warps_m * self.warps_n) as u32)
    }

    /// Bytes of shared memory for parts of K.
    fn parts(self, w_bits: usize) -> usize {
        (self.m * 8 + self.n * w_bits) * self.k / 8 * self.stages
    }
}
