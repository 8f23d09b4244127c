//! One row, or one group of a row's columns: symmetric, with a zero point, and with a scale that is known.

use super::bytes::Bytes;
use crate::{
    row::Row,
    simd::{Isa, LANES, first_lanes},
};

/// Quantises one row and returns its scale. The row is read twice, which spares scratch memory.
#[inline(always)]
pub(crate) fn quantize_row<I: Isa>(isa: I, x: &impl Row, q: &mut [i8]) -> f32 {
    let (columns, scale) = (x.len(), row_scale(isa, x));
    for start in (0..columns).step_by(LANES) {
        quantize_lanes(isa, x, start, scale, &mut q[start..columns.min(start + LANES)]);
    }
    scale
}

/// The scale of one row: NaN where the row holds a NaN or an infinity.
#[inline(always)]
pub(crate) fn row_scale<I: Isa>(isa: I, x: &impl Row) -> f32 {
    let columns = x.len();
    let mut greatest = isa.splat(0.0);
    let mut finite = true;
    for start in (0..columns).step_by(LANES) {
        let size = isa.abs(x.at(isa, start));
        greatest = isa.max(size, greatest);
        // False for NaN too. Lanes beyond the row are zeros.
        finite &= isa.less(size, isa.splat(f32::INFINITY)) == first_lanes(LANES);
    }
    if !finite {
        return f32::NAN;
    }
    (isa.max_lane(greatest) / 127.0).max(f32::MIN_POSITIVE)
}

/// Up to 16 elements of a row with a scale of [`row_scale`], from `start` on; zeros where the scale is NaN.
#[inline(always)]
pub(crate) fn quantize_lanes<I: Isa>(isa: I, x: &impl Row, start: usize, scale: f32, q: &mut [i8]) {
    if scale.is_nan() {
        q.fill(0);
        return;
    }
    // Rounding in the conversion, to nearest even. The quotient is at most 127 and a rounding step, so that the clamp
    // to +-127 is the conversion's own: 127.00001 rounds to 127.
    let inverse = isa.splat(1.0 / scale);
    isa.store_i8_partial(isa.to_i32(isa.mul(x.at(isa, start), inverse)), q);
}

/// A scale and a zero point, and how far below I8 the stored bytes are.
#[derive(Clone, Copy)]
pub(super) struct Steps {
    pub(super) scale: f32,
    /// Of formats that have one.
    pub(super) zero: Option<i32>,
    /// What the bytes of a signed integer are XORed with: U8 is I8 with the highest bit turned, 128 below.
    pub(super) flip: u8,
}

impl Steps {
    /// Of values from `-below` to `above`, both zero or more. A NaN scale where either is not finite.
    #[inline(always)]
    pub(super) fn of_range(below: f32, above: f32, flip: u8) -> Self {
        if !(below.is_finite() && above.is_finite()) {
            return Steps { scale: f32::NAN, zero: Some(0), flip };
        }
        let scale = (above / 255.0 + below / 255.0).max(f32::MIN_POSITIVE);
        let least = i32::from(flip) as f32 - 128.0;
        // Between `least` and `least + 255` but for rounding.
        let zero = (least + below / scale).round_ties_even().clamp(least, least + 255.0);
        Steps { scale, zero: Some(zero as i32), flip }
    }

    /// Symmetric, of values up to `largest` in magnitude.
    pub(super) fn symmetric(largest: f32) -> Self {
        let finite = (largest / 127.0).max(f32::MIN_POSITIVE);
        Steps { scale: if largest.is_finite() { finite } else { f32::NAN }, zero: None, flip: 0 }
    }

    /// Quantises a row. What cannot be told, NaN by any scale, is the zero point.
    #[inline(always)]
    pub(super) fn quantize<I: Isa>(&self, isa: I, x: &impl Row, q: &mut [i8]) {
        let (by, zero, least) = match self.zero {
            Some(zero) => (self.scale, zero.saturating_sub(self.flip.into()) as f32, -128.0),
            None => (1.0 / self.scale, 0.0, -127.0),
        };
        let (by, bytes) = (isa.splat(by), Bytes { zero, least, flip: self.flip });
        for (vector, q) in q.chunks_mut(LANES).enumerate() {
            let x = x.at(isa, vector * LANES);
            bytes.store(isa, if self.zero.is_some() { isa.div(x, by) } else { isa.mul(x, by) }, q);
        }
    }
}

/// How far a row reaches below and above 0. Infinite or NaN where an element is.
#[inline(always)]
pub(super) fn range<I: Isa>(isa: I, x: &impl Row) -> [f32; 2] {
    let zero = isa.splat(0.0);
    let (mut below, mut above, mut finite) = (zero, zero, true);
    for start in (0..x.len()).step_by(LANES) {
        let x = x.at(isa, start);
        finite &= isa.less(isa.abs(x), isa.splat(f32::INFINITY)) == first_lanes(LANES);
        below = isa.max(isa.sub(zero, x), below);
        above = isa.max(x, above);
    }
    if finite { [isa.max_lane(below), isa.max_lane(above)] } else { [f32::INFINITY; 2] }
}
