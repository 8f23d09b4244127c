//! Super-blocks of 256 values, cut into groups that have a small integer scale each: Q2_K to Q6_K.
//!
//! Value `i` of group `g` is value `g * group_len + i` of the super-block. Codes are spread so that one load and one
//! shift give a whole group: a group's codes stand in neighbouring bytes, at the same bits of each.

use bytemuck::{Pod, Zeroable};

use super::Block;
use super::blocks_32::widen;

/// 84 bytes, 16 groups of 16: `value = (scale * s(g)) * code - (min * m(g))`.
///
/// `s(g)` is the low half of `scales[g]`, `m(g)` the high half. A code is bits `2 * (g / 2 % 4)` and up of byte
/// `32 * (g / 8) + 16 * (g % 2) + i` of `codes`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Q2K {
    scales: [u8; 16],
    codes: [u8; 64],
    scale: [u8; 2],
    min: [u8; 2],
}

/// 110 bytes, 16 groups of 16: `value = (scale * (s(g) - 32)) * (code - 4 + 4 * high)`.
///
/// `code` has two bits, placed as in [`Q2K`]; `high` is bit `g / 2` of byte `16 * (g % 2) + i` of `high`. The six bits
/// of `s(g)`: the low four are half `g / 8` of `scales[g % 8]`, the upper two are bits `2 * (g / 4)` and up of
/// `scales[8 + g % 4]`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Q3K {
    high: [u8; 32],
    codes: [u8; 64],
    scales: [u8; 12],
    scale: [u8; 2],
}

/// 144 bytes, 8 groups of 32: `value = (scale * s(g)) * code - (min * m(g))`.
///
/// A code is half `g % 2` of byte `32 * (g / 2) + i` of `codes`; `s` and `m` as [`scales_and_mins`] says.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Q4K {
    scale: [u8; 2],
    min: [u8; 2],
    scales: [u8; 12],
    codes: [u8; 128],
}

/// 176 bytes, 8 groups of 32: as [`Q4K`], with bit `g` of byte `i` of `high` as bit 4 of the code.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Q5K {
    scale: [u8; 2],
    min: [u8; 2],
    scales: [u8; 12],
    high: [u8; 32],
    codes: [u8; 128],
}

/// 210 bytes, 16 groups of 16: `value = (scale * s(g)) * (code - 32)`, `s(g)` the signed byte `scales[g]`.
///
/// With `h = g / 8` and `q = g / 2 % 4`: the low four bits of a code are half `q / 2` of byte
/// `64 * h + 32 * (q % 2) + 16 * (g % 2) + i` of `low`, the upper two are bits `2 * q` and up of byte
/// `32 * h + 16 * (g % 2) + i` of `high`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Q6K {
    low: [u8; 128],
    high: [u8; 64],
    scales: [u8; 16],
    scale: [u8; 2],
}

/// The 6-bit scales and minima of the eight groups of [`Q4K`] and [`Q5K`], from 12 bytes.
///
/// Groups 0 to 3: the low six bits of bytes `g` (scale) and `4 + g` (minimum). Groups 4 to 7: low four bits from the
/// low (scale) and high half (minimum) of byte `4 + g`; their upper two bits are the upper two of bytes `g - 4` and `g`.
fn scales_and_mins(packed: &[u8; 12]) -> [(f32, f32); 8] {
    std::array::from_fn(|g| {
        let (scale, min) = if g < 4 {
            (packed[g] & 0x3F, packed[4 + g] & 0x3F)
        } else {
            (
                (packed[4 + g] & 0xF) | ((packed[g - 4] >> 6) << 4),
                (packed[4 + g] >> 4) | ((packed[g] >> 6) << 4),
            )
        };
        (f32::from(scale), f32::from(min))
    })
}

/// `N` neighbouring bytes, from a constant place in a block.
fn span<const N: usize>(bytes: &[u8], start: usize) -> &[u8; N] {
    // Every start in this file leaves N bytes; the fallback is never taken.
    bytes.get(start..).and_then(|rest| rest.first_chunk()).unwrap_or(&[0; N])
}

impl Block<256> for Q2K {
    fn write(&self, out: &mut [f32; 256]) {
        let (scale, min) = (widen(self.scale), widen(self.min));
        for (g, (values, packed)) in out.as_chunks_mut::<16>().0.iter_mut().zip(self.scales).enumerate() {
            let codes: &[u8; 16] = span(&self.codes, 32 * (g / 8) + 16 * (g % 2));
            let shift = 2 * (g / 2 % 4);
            let step = scale * f32::from(packed & 0xF);
            let floor = min * f32::from(packed >> 4);
            for (value, code) in values.iter_mut().zip(codes) {
                *value = step * f32::from((code >> shift) & 3) - floor;
            }
        }
    }
}

impl Block<256> for Q3K {
    fn write(&self, out: &mut [f32; 256]) {
        let scale = widen(self.scale);
        for (g, values) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let codes: &[u8; 16] = span(&self.codes, 32 * (g / 8) + 16 * (g % 2));
            let high: &[u8; 16] = span(&self.high, 16 * (g % 2));
            let shift = 2 * (g / 2 % 4);
            let low_bits = (self.scales[g % 8] >> (4 * (g / 8))) & 0xF;
            let high_bits = (self.scales[8 + g % 4] >> (2 * (g / 4))) & 3;
            let step = scale * f32::from((low_bits | high_bits << 4) as i8 - 32);
            for ((value, code), high) in values.iter_mut().zip(codes).zip(high) {
                let code = ((code >> shift) & 3) | ((high >> (g / 2)) & 1) << 2;
                *value = step * f32::from(code as i8 - 4);
            }
        }
    }
}

impl Block<256> for Q4K {
    fn write(&self, out: &mut [f32; 256]) {
        let (scale, min) = (widen(self.scale), widen(self.min));
        let scales = scales_and_mins(&self.scales);
        for (g, (values, (s, m))) in out.as_chunks_mut::<32>().0.iter_mut().zip(scales).enumerate() {
            let codes: &[u8; 32] = span(&self.codes, 32 * (g / 2));
            let shift = 4 * (g % 2);
            let (step, floor) = (scale * s, min * m);
            for (value, code) in values.iter_mut().zip(codes) {
                *value = step * f32::from((code >> shift) & 0xF) - floor;
            }
        }
    }
}

impl Block<256> for Q5K {
    fn write(&self, out: &mut [f32; 256]) {
        let (scale, min) = (widen(self.scale), widen(self.min));
        let scales = scales_and_mins(&self.scales);
        for (g, (values, (s, m))) in out.as_chunks_mut::<32>().0.iter_mut().zip(scales).enumerate() {
            let codes: &[u8; 32] = span(&self.codes, 32 * (g / 2));
            let shift = 4 * (g % 2);
            let (step, floor) = (scale * s, min * m);
            for ((value, code), high) in values.iter_mut().zip(codes).zip(&self.high) {
                let code = ((code >> shift) & 0xF) | ((high >> g) & 1) << 4;
                *value = step * f32::from(code) - floor;
            }
        }
    }
}

impl Block<256> for Q6K {
    fn write(&self, out: &mut [f32; 256]) {
        let scale = widen(self.scale);
        for (g, (values, s)) in out.as_chunks_mut::<16>().0.iter_mut().zip(self.scales).enumerate() {
            let quarter = g / 2 % 4;
            let low: &[u8; 16] = span(&self.low, 64 * (g / 8) + 32 * (quarter % 2) + 16 * (g % 2));
            let high: &[u8; 16] = span(&self.high, 32 * (g / 8) + 16 * (g % 2));
            let shift = 4 * (quarter / 2);
            let step = scale * f32::from(s as i8);
            for ((value, low), high) in values.iter_mut().zip(low).zip(high) {
                let code = ((low >> shift) & 0xF) | ((high >> (2 * quarter)) & 3) << 4;
                *value = step * f32::from(code as i8 - 32);
            }
        }
    }
}
