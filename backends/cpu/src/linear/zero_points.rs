//! Zero points taken off integer sums, exact modulo 2^32:
//! `Σ (a - za) (w - zw) = Σ a w - za · Σ (w - zw) - zw · Σ a`.

use super::epilogue::RowSums;
use crate::simd::{Isa, Kernel, LANES};

/// The zero points of one operand or both.
#[derive(Clone, Copy, Default)]
pub(super) struct ZeroPoints<'a> {
    pub(super) activations: Option<ActivationZeros<'a>>,
    /// Of each channel.
    pub(super) weights: Option<&'a [i32]>,
}

/// What the zero points of activations need.
#[derive(Clone, Copy)]
pub(super) struct ActivationZeros<'a> {
    /// Of each row, or one for all.
    pub(super) zeros: &'a [i32],
    /// Taken off every one of them: U8 activations are multiplied as `a - 128`.
    pub(super) offset: i32,
    /// Of each channel, `Σ_k (w - zw)`.
    pub(super) column_sums: &'a [i32],
}

impl ActivationZeros<'_> {
    #[inline(always)]
    fn of_row(&self, row: usize) -> i32 {
        self.zeros[row.min(self.zeros.len() - 1)].wrapping_sub(self.offset)
    }
}

/// Corrects the sums of a tile.
pub(super) struct Correct<'a> {
    pub(super) zero_points: ZeroPoints<'a>,
    /// The first row.
    pub(super) first: usize,
    /// `Σ a` of each row of the tile.
    pub(super) row_sums: &'a [i32],
    /// The channels of each vector.
    pub(super) channels: [std::ops::Range<usize>; 2],
    pub(super) sums: &'a mut [RowSums<i32>],
}

impl Kernel for Correct<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, _isa: I) {
        let Self { zero_points, first, row_sums, channels, sums } = self;
        let column_sums = zero_points.activations.map(|zeros| lanes(zeros.column_sums, &channels));
        let weights = zero_points.weights.map(|zeros| lanes(zeros, &channels));
        for (row, (sums, &row_sum)) in sums.iter_mut().zip(row_sums).enumerate() {
            if let (Some(activations), Some(column_sums)) = (zero_points.activations, &column_sums) {
                subtract(sums, column_sums, activations.of_row(first + row));
            }
            if let Some(weights) = &weights {
                subtract(sums, weights, row_sum);
            }
        }
    }
}

/// What belongs to each lane; 0 where there is no channel.
#[inline(always)]
fn lanes(values: &[i32], channels: &[std::ops::Range<usize>; 2]) -> RowSums<i32> {
    let mut lanes = [[0; LANES]; 2];
    for (lanes, channels) in lanes.iter_mut().zip(channels) {
        for (lane, value) in lanes.iter_mut().zip(&values[channels.clone()]) {
            *lane = *value;
        }
    }
    lanes
}

/// `sums = sums - by * lanes`. Plain loops of a constant length: the compiler knows the instruction set here.
#[inline(always)]
fn subtract(sums: &mut RowSums<i32>, lanes: &RowSums<i32>, by: i32) {
    for (sums, lanes) in sums.iter_mut().zip(lanes) {
        for (sum, lane) in sums.iter_mut().zip(lanes) {
            *sum = sum.wrapping_sub(by.wrapping_mul(*lane));
        }
    }
}
