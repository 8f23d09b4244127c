//! Blocks of 32 values: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0.
//!
//! `code(i)` of the 4- and 5-bit types: byte `i` of `codes` has the low bits of value `i` in its low half and those of
//! value `i + 16` in its high half. In the 5-bit types bit `i` of the little-endian word `high` is bit 4 of value `i`.

use bytemuck::{Pod, Zeroable};
use half::f16;

use super::Block;

/// 18 bytes: `scale` f16, 16 bytes of 4-bit codes. `value(i) = scale * (code(i) - 8)`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Q4_0 {
    scale: [u8; 2],
    codes: [u8; 16],
}

/// 20 bytes: `scale` f16, `min` f16, 16 bytes of 4-bit codes. `value(i) = scale * code(i) + min`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Q4_1 {
    scale: [u8; 2],
    min: [u8; 2],
    codes: [u8; 16],
}

/// 22 bytes: `scale` f16, 32 high bits, 16 bytes of low halves. `value(i) = scale * (code(i) - 16)`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Q5_0 {
    scale: [u8; 2],
    high: [u8; 4],
    codes: [u8; 16],
}

/// 24 bytes: `scale` f16, `min` f16, 32 high bits, 16 bytes of low halves. `value(i) = scale * code(i) + min`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Q5_1 {
    scale: [u8; 2],
    min: [u8; 2],
    high: [u8; 4],
    codes: [u8; 16],
}

/// 34 bytes: `scale` f16, 32 signed codes. `value(i) = scale * code(i)`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Q8_0 {
    scale: [u8; 2],
    codes: [u8; 32],
}

/// A little-endian f16, widened.
pub(super) fn widen(bits: [u8; 2]) -> f32 {
    f16::from_le_bytes(bits).to_f32()
}

fn nibbles(codes: &[u8; 16], out: &mut [f32; 32], value: impl Fn(u8) -> f32) {
    let (low, high) = out.split_at_mut(16);
    for ((low, high), &pair) in low.iter_mut().zip(high).zip(codes) {
        *low = value(pair & 0xF);
        *high = value(pair >> 4);
    }
}

fn five_bits(codes: &[u8; 16], high: [u8; 4], out: &mut [f32; 32], value: impl Fn(u8) -> f32) {
    let bits = u32::from_le_bytes(high);
    let (first, second) = out.split_at_mut(16);
    for (i, ((first, second), &pair)) in (0u32..).zip(first.iter_mut().zip(second).zip(codes)) {
        *first = value((pair & 0xF) | (((bits >> i) as u8 & 1) << 4));
        *second = value((pair >> 4) | (((bits >> (i + 16)) as u8 & 1) << 4));
    }
}

impl Block<32> for Q4_0 {
    fn write(&self, out: &mut [f32; 32]) {
        let scale = widen(self.scale);
        nibbles(&self.codes, out, |code| scale * f32::from(code as i8 - 8));
    }
}

impl Block<32> for Q4_1 {
    fn write(&self, out: &mut [f32; 32]) {
        let (scale, min) = (widen(self.scale), widen(self.min));
        nibbles(&self.codes, out, |code| scale * f32::from(code) + min);
    }
}

impl Block<32> for Q5_0 {
    fn write(&self, out: &mut [f32; 32]) {
        let scale = widen(self.scale);
        five_bits(&self.codes, self.high, out, |code| scale * f32::from(code as i8 - 16));
    }
}

impl Block<32> for Q5_1 {
    fn write(&self, out: &mut [f32; 32]) {
        let (scale, min) = (widen(self.scale), widen(self.min));
        five_bits(&self.codes, self.high, out, |code| scale * f32::from(code) + min);
    }
}

impl Block<32> for Q8_0 {
    fn write(&self, out: &mut [f32; 32]) {
        let scale = widen(self.scale);
        for (value, &code) in out.iter_mut().zip(&self.codes) {
            *value = scale * f32::from(code as i8);
        }
    }
}
