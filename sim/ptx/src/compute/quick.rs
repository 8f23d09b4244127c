//! The conversions that kernels are full of, without branches, so that they become vector instructions.

/// The nearest bf16 of an f32's bits.
#[inline(always)]
pub(super) fn nearest_bf16(bits: u32) -> u32 {
    // Half of the last place, less one where it is even: ties go to the even one. Infinity stays what it is, and a NaN
    // whose sum wraps is not kept.
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    if bits & 0x7fff_ffff > 0x7f80_0000 { 0x7fff } else { rounded }
}

/// The nearest f16 of an f32's bits.
#[inline(always)]
pub(super) fn nearest_f16(bits: u32) -> u32 {
    let magnitude = bits & 0x7fff_ffff;
    // As above, with the exponent counted from f16's bias.
    let normal = magnitude.wrapping_add(0xfff + (magnitude >> 13 & 1)).wrapping_sub((127 - 15) << 23) >> 13;
    // The last place of 0.5 is that of f16's subnormal numbers: the sum rounds as they do.
    let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0x3f00_0000);
    let finite = if magnitude < 0x3880_0000 { subnormal } else { normal };
    // From 65520 on it is nearer to infinity.
    let bounded = if magnitude >= 0x477f_f000 { 0x7c00 } else { finite };
    if magnitude > 0x7f80_0000 { 0x7fff } else { bounded | (bits >> 16 & 0x8000) }
}

/// The f32 of an f16's bits.
#[inline(always)]
pub(super) fn f32_of_f16(bits: u32) -> f32 {
    // Its fields in f32's places make a number whose exponent is too small by 127 - 15.
    let magnitude = f32::from_bits((bits & 0x7fff) << 13) * f32::from_bits((127 + 127 - 15) << 23);
    let special = if bits & 0x7c00 == 0x7c00 { 0x7f80_0000 } else { 0 };
    f32::from_bits(magnitude.to_bits() | special | (bits & 0x8000) << 16)
}

/// An f64 that was rounded to odd, rounded to odd once more: as an f32.
#[inline(always)]
pub(super) fn odd_f32(value: f64) -> f32 {
    let nearest = value as f32;
    let error = value - f64::from(nearest);
    let bits = nearest.to_bits();
    let inexact = (error > 0.0) | (error < 0.0);
    let away = (error > 0.0) == (value > 0.0);
    let neighbour = if away { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    // An overflow is no neighbour of infinity, and even it is infinity in every narrower format.
    let adjust = inexact & (bits & 1 == 0) & (bits & 0x7f80_0000 != 0x7f80_0000);
    f32::from_bits(if adjust { neighbour } else { bits })
}

#[cfg(test)]
mod tests {
    use super::super::format::{BF16, F16};
    use super::*;
    use crate::ir::Rounding;

    #[test]
    fn they_agree_with_the_general_ones() {
        for bits in 0..1u32 << 16 {
            let quick = f32_of_f16(bits);
            let exact = F16.decode(u64::from(bits));
            assert!(f64::from(quick) == exact || quick.is_nan() && exact.is_nan(), "{bits:#x}");
            for low in [0, 1, 0xfff, 0x1000, 0x1001, 0x2000, 0x3000, 0x5000, 0x7fff, 0x8000, 0x8001, 0xffff] {
                let f32_bits = bits << 16 | low;
                let value = f64::from(f32::from_bits(f32_bits));
                let expected = BF16.encode(value, Rounding::NearestEven, false);
                assert_eq!(u64::from(nearest_bf16(f32_bits)), expected, "{f32_bits:#x}");
                let expected = F16.encode(value, Rounding::NearestEven, false);
                assert_eq!(u64::from(nearest_f16(f32_bits)), expected, "{f32_bits:#x}");
            }
        }
    }

    #[test]
    fn odd_values_round_once() {
        let mut seed = 3u64;
        for _ in 0..300_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Few bits set in the fraction, so that halfway cases are common; exponents of all f32.
            let exponent = 1023 - 160 + (seed >> 33) % 300;
            let fraction = (seed & seed >> 21 & 0xf_ffff) << 32 | seed >> 62;
            let value = f64::from_bits(seed & 1 << 63 | exponent << 52 | fraction);
            let bits = odd_f32(value).to_bits();
            let expected = BF16.encode(value, Rounding::NearestEven, false);
            assert_eq!(u64::from(nearest_bf16(bits)), expected, "{value:e}");
            let expected = F16.encode(value, Rounding::NearestEven, false);
            assert_eq!(u64::from(nearest_f16(bits)), expected, "{value:e}");
        }
    }
}
