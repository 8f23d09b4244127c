//! Rows of quantised tables, dequantised as they are read.

use crate::{
    row::Row,
    simd::{Isa, LANES, first_lanes},
};
use halite_kernels::linear::{BLOCK_GROUP, WeightFormat};

/// `q · scale`.
pub(super) struct Int8Row<'a> {
    pub(super) q: &'a [i8],
    pub(super) scale: f32,
}

impl Row for Int8Row<'_> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.q.len()
    }

    #[inline(always)]
    fn at<I: Isa>(&self, isa: I, start: usize) -> I::F32 {
        let q = isa.load_i8_partial(&self.q[start..self.q.len().min(start + LANES)]);
        isa.mul(isa.to_f32(q), isa.splat(self.scale))
    }
}

/// `(code - 8) · scale`, two codes a byte.
pub(super) struct Int4Row<'a> {
    pub(super) codes: &'a [u8],
    pub(super) scales: &'a [f32],
    pub(super) group: usize,
    pub(super) columns: usize,
}

impl Row for Int4Row<'_> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.columns
    }

    #[inline(always)]
    fn at<I: Isa>(&self, isa: I, start: usize) -> I::F32 {
        let mut q = [0i8; LANES];
        let count = LANES.min(self.columns - start);
        let pairs = q[..count].chunks_mut(2).zip(&self.codes[start / 2..]);
        for (pair, &byte) in pairs {
            for (half, q) in pair.iter_mut().enumerate() {
                *q = (byte >> (4 * half) & 15) as i8 - 8;
            }
        }
        // Groups are whole vectors.
        let scale = isa.splat(self.scales[start / self.group]);
        isa.mul(isa.to_f32(isa.load_i8_partial(&q[..count])), scale)
    }
}

/// Blocks of a file: `scale · q + min`.
pub(super) struct BlockRow<'a> {
    pub(super) format: WeightFormat,
    pub(super) blocks: &'a [u8],
    pub(super) columns: usize,
}

impl Row for BlockRow<'_> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.columns
    }

    /// A group is decoded for each half of it, which is plain, and little beside fetching a row from memory.
    #[inline(always)]
    fn at<I: Isa>(&self, isa: I, start: usize) -> I::F32 {
        let Some(group) = self.format.block_values(self.blocks, start / BLOCK_GROUP) else {
            return isa.splat(f32::NAN);
        };
        let q = isa.load_i8_partial(&group.q[start % BLOCK_GROUP..][..LANES]);
        let product = isa.mul(isa.to_f32(q), isa.splat(group.scale));
        let y =
            if self.format == WeightFormat::Q4_0 { product } else { isa.add(product, isa.splat(group.min)) };
        isa.select(first_lanes(self.columns - start), y, isa.splat(0.0))
    }
}
