//! The portable tier: plain loops over 16 lanes, which the compiler turns into whatever vectors its target has.
//!
//! No operation calls libm: rounding is done by adding and subtracting 2^23, and multiply-add is two operations.

use std::array::from_fn;

use half::{bf16, f16};

use super::{Isa, Kernel, LANES, Mask};

/// The token of the portable tier; every machine has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Portable;

/// 16 lanes of `f32`.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct F32x16([f32; LANES]);

/// 16 lanes of `i32`.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct I32x16([i32; LANES]);

#[inline(always)]
fn map(x: F32x16, f: impl Fn(f32) -> f32) -> F32x16 {
    F32x16(from_fn(|i| f(x.0[i])))
}

#[inline(always)]
fn zip(a: F32x16, b: F32x16, f: impl Fn(f32, f32) -> f32) -> F32x16 {
    F32x16(from_fn(|i| f(a.0[i], b.0[i])))
}

#[inline(always)]
fn zip_i32(a: I32x16, b: I32x16, f: impl Fn(i32, i32) -> i32) -> I32x16 {
    I32x16(from_fn(|i| f(a.0[i], b.0[i])))
}

#[inline(always)]
fn mask(f: impl Fn(usize) -> bool) -> Mask {
    let mut bits = 0;
    for i in 0..LANES {
        bits |= Mask::from(f(i)) << i;
    }
    bits
}

#[inline(always)]
fn padded<T: Copy>(from: &[T], zero: T) -> [T; LANES] {
    let mut lanes = [zero; LANES];
    for (lane, &x) in lanes.iter_mut().zip(from) {
        *lane = x;
    }
    lanes
}

/// Folds the tree that [`Isa::sum`] documents.
#[inline(always)]
fn tree<T: Copy>(mut x: [T; LANES], f: impl Fn(T, T) -> T) -> T {
    for half in [8, 4, 2, 1] {
        for i in 0..half {
            x[i] = f(x[i], x[i + half]);
        }
    }
    x[0]
}

#[inline(always)]
fn greater_of(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

/// 2^23: from here up every `f32` is an integer, so adding it to a smaller value rounds that to one.
const INTEGERS: f32 = 8_388_608.0;

#[inline(always)]
fn round(x: f32) -> f32 {
    let size = x.abs();
    let rounded = ((size + INTEGERS) - INTEGERS).copysign(x);
    if size < INTEGERS { rounded } else { x }
}

#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits(((n + 127) as u32) << 23)
}

/// Exact: the bits are moved to where `f32` keeps them and the exponent is rebased by a product that never rounds.
/// Without a branch, so that 16 of them become vector operations.
#[inline(always)]
fn widen_f16(bits: i32) -> f32 {
    let size = (bits & 0x7fff) << 13;
    let rebased = (f32::from_bits(size as u32) * power_of_two(112)).to_bits() as i32;
    // Infinity and NaN have the greatest exponent in both types.
    let greatest = (((0x7c00 << 13) - 1 - size) >> 31) & 0x7f80_0000;
    f32::from_bits((rebased | greatest | (bits & 0x8000) << 16) as u32)
}

impl Isa for Portable {
    type F32 = F32x16;
    type I32 = I32x16;
    const TILE_ROWS: usize = 4;

    #[inline]
    fn call<K: Kernel>(self, kernel: K) -> K::Output {
        kernel.run(self)
    }
    #[inline(always)]
    fn prefetch(self, _: *const u8) {}

    #[inline(always)]
    fn splat(self, x: f32) -> F32x16 {
        F32x16([x; LANES])
    }
    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> F32x16 {
        F32x16(*from)
    }
    #[inline(always)]
    fn load_partial(self, from: &[f32]) -> F32x16 {
        F32x16(padded(from, 0.0))
    }
    #[inline(always)]
    fn load_bf16(self, from: &[bf16; LANES]) -> F32x16 {
        F32x16(from_fn(|i| f32::from_bits(u32::from(from[i].to_bits()) << 16)))
    }
    #[inline(always)]
    fn load_bf16_partial(self, from: &[bf16]) -> F32x16 {
        self.load_bf16(&padded(from, bf16::ZERO))
    }
    #[inline(always)]
    fn load_f16(self, from: &[f16; LANES]) -> F32x16 {
        let bits: [i32; LANES] = from_fn(|i| i32::from(from[i].to_bits()));
        F32x16(bits.map(widen_f16))
    }
    #[inline(always)]
    fn load_f16_partial(self, from: &[f16]) -> F32x16 {
        self.load_f16(&padded(from, f16::ZERO))
    }
    #[inline(always)]
    fn store(self, x: F32x16, to: &mut [f32; LANES]) {
        *to = x.0;
    }
    #[inline(always)]
    fn store_partial(self, x: F32x16, to: &mut [f32]) {
        for (to, x) in to.iter_mut().zip(x.0) {
            *to = x;
        }
    }
    #[inline(always)]
    fn store_bf16_partial(self, x: F32x16, to: &mut [bf16]) {
        for (to, x) in to.iter_mut().zip(x.0) {
            let bits = x.to_bits();
            let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1));
            let quiet = bits | 0x0040_0000;
            *to = bf16::from_bits(((if x.is_nan() { quiet } else { rounded }) >> 16) as u16);
        }
    }
    #[inline(always)]
    fn store_f16_partial(self, x: F32x16, to: &mut [f16]) {
        for (to, x) in to.iter_mut().zip(x.0) {
            *to = f16::from_f32_const(x);
        }
    }

    #[inline(always)]
    fn add(self, a: F32x16, b: F32x16) -> F32x16 {
        zip(a, b, |a, b| a + b)
    }
    #[inline(always)]
    fn sub(self, a: F32x16, b: F32x16) -> F32x16 {
        zip(a, b, |a, b| a - b)
    }
    #[inline(always)]
    fn mul(self, a: F32x16, b: F32x16) -> F32x16 {
        zip(a, b, |a, b| a * b)
    }
    #[inline(always)]
    fn div(self, a: F32x16, b: F32x16) -> F32x16 {
        zip(a, b, |a, b| a / b)
    }
    #[inline(always)]
    fn mul_add(self, a: F32x16, b: F32x16, c: F32x16) -> F32x16 {
        F32x16(from_fn(|i| a.0[i] * b.0[i] + c.0[i]))
    }
    #[inline(always)]
    fn max(self, a: F32x16, b: F32x16) -> F32x16 {
        zip(a, b, greater_of)
    }
    #[inline(always)]
    fn min(self, a: F32x16, b: F32x16) -> F32x16 {
        zip(a, b, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    fn abs(self, x: F32x16) -> F32x16 {
        map(x, f32::abs)
    }
    #[inline(always)]
    fn round(self, x: F32x16) -> F32x16 {
        map(x, round)
    }
    #[inline(always)]
    fn scale_by_power(self, x: F32x16, n: F32x16) -> F32x16 {
        // In two steps, since 2^n alone may leave f32; the first is exact for every x the contract allows.
        zip(x, n, |x, n| {
            let n = n as i32;
            let first = n >> 1;
            x * power_of_two(first) * power_of_two(n - first)
        })
    }

    #[inline(always)]
    fn less(self, a: F32x16, b: F32x16) -> Mask {
        mask(|i| a.0[i] < b.0[i])
    }
    #[inline(always)]
    fn equal(self, a: F32x16, b: F32x16) -> Mask {
        mask(|i| a.0[i] == b.0[i])
    }
    #[inline(always)]
    fn select(self, mask: Mask, yes: F32x16, no: F32x16) -> F32x16 {
        F32x16(from_fn(|i| if mask >> i & 1 == 1 { yes.0[i] } else { no.0[i] }))
    }
    #[inline(always)]
    fn sum(self, x: F32x16) -> f32 {
        tree(x.0, |a, b| a + b)
    }
    #[inline(always)]
    fn max_lane(self, x: F32x16) -> f32 {
        tree(x.0, greater_of)
    }

    #[inline(always)]
    fn splat_i32(self, x: i32) -> I32x16 {
        I32x16([x; LANES])
    }
    #[inline(always)]
    fn load_i32(self, from: &[i32; LANES]) -> I32x16 {
        I32x16(*from)
    }
    #[inline(always)]
    fn load_bytes(self, from: &[u8; 4 * LANES]) -> I32x16 {
        I32x16(from_fn(|i| {
            i32::from_le_bytes([from[4 * i], from[4 * i + 1], from[4 * i + 2], from[4 * i + 3]])
        }))
    }
    #[inline(always)]
    fn load_i8_partial(self, from: &[i8]) -> I32x16 {
        I32x16(padded(from, 0).map(i32::from))
    }
    #[inline(always)]
    fn store_i32(self, x: I32x16, to: &mut [i32; LANES]) {
        *to = x.0;
    }
    #[inline(always)]
    fn store_i32_partial(self, x: I32x16, to: &mut [i32]) {
        for (to, x) in to.iter_mut().zip(x.0) {
            *to = x;
        }
    }
    #[inline(always)]
    fn store_i8_partial(self, x: I32x16, to: &mut [i8]) {
        for (to, x) in to.iter_mut().zip(x.0) {
            *to = x.clamp(-128, 127) as i8;
        }
    }
    #[inline(always)]
    fn add_i32(self, a: I32x16, b: I32x16) -> I32x16 {
        zip_i32(a, b, i32::wrapping_add)
    }
    #[inline(always)]
    fn sub_i32(self, a: I32x16, b: I32x16) -> I32x16 {
        zip_i32(a, b, i32::wrapping_sub)
    }
    #[inline(always)]
    fn and(self, a: I32x16, b: I32x16) -> I32x16 {
        zip_i32(a, b, |a, b| a & b)
    }
    #[inline(always)]
    fn shift_left<const N: u32>(self, a: I32x16) -> I32x16 {
        I32x16(a.0.map(|a| a << N))
    }
    #[inline(always)]
    fn shift_right<const N: u32>(self, a: I32x16) -> I32x16 {
        I32x16(a.0.map(|a| (a as u32 >> N) as i32))
    }
    #[inline(always)]
    fn sum_i32(self, x: I32x16) -> i32 {
        tree(x.0, i32::wrapping_add)
    }
    #[inline(always)]
    fn dot_u8_i8(self, acc: I32x16, u: I32x16, s: I32x16) -> I32x16 {
        // By shifts instead of byte arrays: these become vector shifts and 16-bit products on every target. A loop, because
        // `from_fn` is unrolled before vectors are looked for; wrapping, because checks keep the compiler from vectors: no
        // sum of four products overflows.
        let mut sums = acc.0;
        for (sum, (&u, &s)) in sums.iter_mut().zip(u.0.iter().zip(&s.0)) {
            let product =
                |byte: u32| ((u as u32 >> (8 * byte) & 0xff) as i32).wrapping_mul(s << (24 - 8 * byte) >> 24);
            let pairs = [product(0).wrapping_add(product(1)), product(2).wrapping_add(product(3))];
            *sum = sum.wrapping_add(pairs[0].wrapping_add(pairs[1]));
        }
        I32x16(sums)
    }

    #[inline(always)]
    fn to_i32(self, x: F32x16) -> I32x16 {
        I32x16(from_fn(|i| {
            let nearest = round(x.0[i]);
            if nearest < 2_147_483_648.0 { nearest as i32 } else { i32::MIN }
        }))
    }
    #[inline(always)]
    fn to_f32(self, x: I32x16) -> F32x16 {
        F32x16(x.0.map(|x| x as f32))
    }
    #[inline(always)]
    fn to_bits(self, x: F32x16) -> I32x16 {
        I32x16(x.0.map(|x| x.to_bits() as i32))
    }
    #[inline(always)]
    fn of_bits(self, x: I32x16) -> F32x16 {
        F32x16(x.0.map(|x| f32::from_bits(x as u32)))
    }
}
