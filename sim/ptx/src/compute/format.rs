//! Floating-point formats: their bits from an f64, and an f64 from their bits.

use crate::ir::{Rounding, Type};

/// A binary format of at most 32 bits, within f64's range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Format {
    /// Bits of the fraction.
    fraction: u32,
    /// Bits of the exponent.
    exponent: u32,
    /// The largest finite value's bits.
    largest: u64,
    /// Infinity's bits, where there is one.
    infinity: Option<u64>,
    /// The one NaN that instructions make.
    pub(super) nan: u64,
}

/// `.f16`.
pub(super) const F16: Format =
    Format { fraction: 10, exponent: 5, largest: 0x7bff, infinity: Some(0x7c00), nan: 0x7fff };
/// `.bf16`.
pub(super) const BF16: Format =
    Format { fraction: 7, exponent: 8, largest: 0x7f7f, infinity: Some(0x7f80), nan: 0x7fff };
/// `.tf32`, before its bits are moved to the upper end of an f32.
pub(super) const TF32: Format =
    Format { fraction: 10, exponent: 8, largest: 0x3_fbff, infinity: Some(0x3_fc00), nan: 0x3_ffff };
/// `.e4m3`: no infinities; the largest exponent has numbers too.
pub(super) const E4M3: Format = Format { fraction: 3, exponent: 4, largest: 0x7e, infinity: None, nan: 0x7f };
/// `.e5m2`.
pub(super) const E5M2: Format =
    Format { fraction: 2, exponent: 5, largest: 0x7b, infinity: Some(0x7c), nan: 0x7f };
/// `.f32`.
pub(super) const F32: Format =
    Format { fraction: 23, exponent: 8, largest: 0x7f7f_ffff, infinity: Some(0x7f80_0000), nan: 0x7fff_ffff };

impl Format {
    /// The format of a type's elements.
    pub(super) fn of(ty: Type) -> Option<Format> {
        match ty {
            Type::F16 | Type::F16x2 => Some(F16),
            Type::BF16 | Type::BF16x2 => Some(BF16),
            Type::TF32 => Some(TF32),
            Type::E4M3 | Type::E4M3x2 => Some(E4M3),
            Type::E5M2 | Type::E5M2x2 => Some(E5M2),
            Type::F32 => Some(F32),
            _ => None,
        }
    }

    /// Where the sign is.
    const fn sign_at(self) -> u32 {
        self.fraction + self.exponent
    }

    /// The exponent of the format's smallest normal number.
    const fn smallest_exponent(self) -> i32 {
        2 - (1 << (self.exponent - 1))
    }

    /// The bits of 1.0.
    pub(super) const fn one(self) -> u64 {
        ((1 << (self.exponent - 1)) - 1) << self.fraction
    }

    /// Whether bits mean a NaN.
    #[inline(always)]
    pub(super) const fn is_nan(self, bits: u64) -> bool {
        let magnitude = bits & ((1 << self.sign_at()) - 1);
        match self.infinity {
            Some(infinity) => magnitude > infinity,
            None => magnitude > self.largest,
        }
    }

    /// Whether bits mean a subnormal number or zero.
    #[inline(always)]
    pub(super) const fn is_below_normal(self, bits: u64) -> bool {
        bits & (self.sign() - 1) < 1 << self.fraction
    }

    /// The sign's bit alone.
    pub(super) const fn sign(self) -> u64 {
        1 << self.sign_at()
    }

    /// The value rounded to the format. Where it is finite and too large: infinity or the largest number, as the
    /// rounding says; with `finite`, and where the format has no infinity, always the largest, infinities too.
    #[inline]
    pub(super) fn encode(self, value: f64, rounding: Rounding, finite: bool) -> u64 {
        if value.is_nan() {
            return self.nan;
        }
        let negative = value.is_sign_negative();
        let sign = u64::from(negative) << self.sign_at();
        let limit = match self.infinity {
            Some(infinity) if !finite => infinity,
            _ => self.largest,
        };
        if value.is_infinite() {
            return sign | limit;
        }
        // value = significand · 2^(exponent - 52), with 53 bits where it is normal.
        let bits = value.to_bits() & !(1 << 63);
        let stored = (bits >> 52) as i32;
        let fraction = bits & ((1 << 52) - 1);
        let (significand, exponent) =
            if stored == 0 { (fraction, -1022) } else { (fraction | 1 << 52, stored - 1023) };
        // Numbers below the smallest normal one keep its spacing.
        let place = exponent.max(self.smallest_exponent());
        // At least 52 - 23, for every format here.
        let dropped = (52 - self.fraction as i32 + place - exponent).min(60) as u32;
        let kept = significand >> dropped;
        let rest = significand & ((1 << dropped) - 1);
        let half = 1u64 << (dropped - 1);
        let up = match rounding {
            Rounding::NearestEven => rest > half || rest == half && kept & 1 == 1,
            Rounding::NearestAway => rest >= half,
            Rounding::Zero => false,
            Rounding::Down => negative && rest != 0,
            Rounding::Up => !negative && rest != 0,
        };
        // A normal number's leading one adds itself to the exponent, and so does a carry.
        let above = (place - self.smallest_exponent()) as u64;
        let magnitude = (above << self.fraction) + kept + u64::from(up);
        if magnitude <= self.largest {
            return sign | magnitude;
        }
        let stays_finite = match rounding {
            Rounding::NearestEven | Rounding::NearestAway => false,
            Rounding::Zero => true,
            Rounding::Down => !negative,
            Rounding::Up => negative,
        };
        sign | if stays_finite { self.largest } else { limit }
    }

    /// The value of bits of this format. Every one is an f64.
    #[inline]
    pub(super) fn decode(self, bits: u64) -> f64 {
        if self.is_nan(bits) {
            return f64::NAN;
        }
        let magnitude = bits & ((1 << self.sign_at()) - 1);
        let value = if self.infinity == Some(magnitude) {
            f64::INFINITY
        } else {
            let fraction = magnitude & ((1 << self.fraction) - 1);
            let stored = (magnitude >> self.fraction) as i32;
            if stored == 0 {
                fraction as f64 * power_of_two(self.smallest_exponent() - self.fraction as i32)
            } else {
                let exponent = stored - 1 + self.smallest_exponent();
                f64::from_bits(((exponent + 1023) as u64) << 52 | fraction << (52 - self.fraction))
            }
        };
        if bits >> self.sign_at() & 1 == 1 { -value } else { value }
    }
}

/// 2 to an exponent of f64's normal numbers.
const fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// An f32's bits with NaN as instructions make it.
#[inline(always)]
pub(super) fn f32_bits(value: f32) -> u64 {
    u64::from(if value.is_nan() { 0x7fff_ffff } else { value.to_bits() })
}

/// An f32 of a lane.
#[inline(always)]
pub(super) fn f32_of(lane: u64) -> f32 {
    f32::from_bits(lane as u32)
}

/// An f64's bits with NaN as instructions make it.
#[inline(always)]
pub(super) fn f64_bits(value: f64) -> u64 {
    if value.is_nan() { 0x7fff_ffff_ffff_ffff } else { value.to_bits() }
}

/// Subnormal f32 values become zeros of their sign.
#[inline(always)]
pub(super) fn flushed(value: f32) -> f32 {
    let bits = value.to_bits();
    f32::from_bits(if bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_of_a_format_stays_itself() {
        for (format, bits) in [(F16, 16), (BF16, 16), (E4M3, 8), (E5M2, 8)] {
            for value in 0..1u64 << bits {
                let expected = if format.is_nan(value) { format.nan } else { value };
                for rounding in [Rounding::NearestEven, Rounding::Zero, Rounding::Down, Rounding::Up] {
                    assert_eq!(format.encode(format.decode(value), rounding, false), expected);
                }
            }
        }
    }

    #[test]
    fn halves_are_those_of_the_half_crate() {
        let mut seed = 1u32;
        for _ in 0..200_000 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let value = f32::from_bits(seed);
            if value.is_nan() {
                continue;
            }
            let wide = f64::from(value);
            let f16 = F16.encode(wide, Rounding::NearestEven, false);
            assert_eq!(f16, u64::from(half::f16::from_f32(value).to_bits()), "{value:e}");
            let bf16 = BF16.encode(wide, Rounding::NearestEven, false);
            assert_eq!(bf16, u64::from(half::bf16::from_f32(value).to_bits()), "{value:e}");
            assert_eq!(F32.encode(wide, Rounding::NearestEven, false), u64::from(seed));
        }
    }

    #[test]
    fn f32_rounds_as_the_cpu_does() {
        let mut seed = 1u64;
        for _ in 0..200_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Exponents around f32's whole range, subnormals and overflow too.
            let exponent = 1023 - 155 + (seed >> 40) % 290;
            let value = f64::from_bits(seed & 0x800f_ffff_ffff_ffff | exponent << 52);
            let nearest = value as f32;
            assert_eq!(F32.encode(value, Rounding::NearestEven, false), u64::from(nearest.to_bits()));
            let down = f32_of(F32.encode(value, Rounding::Down, false));
            let up = f32_of(F32.encode(value, Rounding::Up, false));
            assert!(f64::from(down) <= value && value <= f64::from(up));
            assert!(down == up || down.next_up() == up);
        }
    }

    #[test]
    fn too_large() {
        use Rounding::{Down, NearestEven, Up, Zero};
        assert_eq!(F16.encode(65520.0, NearestEven, false), 0x7c00);
        assert_eq!(F16.encode(65519.0, NearestEven, false), 0x7bff);
        assert_eq!(F16.encode(1e6, Zero, false), 0x7bff);
        assert_eq!(F16.encode(1e6, Down, false), 0x7bff);
        assert_eq!(F16.encode(-1e6, Down, false), 0xfc00);
        assert_eq!(F16.encode(-1e6, Up, false), 0xfbff);
        assert_eq!(F16.encode(f64::INFINITY, NearestEven, true), 0x7bff);
        assert_eq!(E4M3.encode(464.0, NearestEven, true), 0x7e);
        assert_eq!(E4M3.encode(1e9, NearestEven, true), 0x7e);
        assert_eq!(E4M3.encode(-1e9, NearestEven, true), 0xfe);
        assert_eq!(E5M2.encode(1e9, NearestEven, true), 0x7b);
        assert_eq!(E4M3.decode(0x7e), 448.0);
        assert_eq!(E4M3.decode(0x01), 0.001_953_125);
        assert_eq!(E5M2.decode(0x7b), 57344.0);
    }
}
