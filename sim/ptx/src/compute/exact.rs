//! Sums, products and quotients in f64 rounded to odd, so that rounding them once more, to a narrower format and in any
//! direction, is right.
//!
//! Rounding to odd (the neighbour with an odd last bit, where a value lies between two) never loses on which side of a
//! narrower format's halfway points a value lies: S. Boldo and G. Melquiond, "Emulation of FMA and correctly rounded
//! sums: proved algorithms using rounding to odd", 2008.

use crate::ir::Rounding;

/// `a + b` rounded to odd. `rounding` is the one that follows: it chooses the sign of a zero.
#[inline(always)]
pub(super) fn sum(a: f64, b: f64, rounding: Rounding) -> f64 {
    let sum = a + b;
    if rounding == Rounding::Down && sum == 0.0 {
        return signed_zero(a, b);
    }
    odd(sum, sum_error(a, b, sum))
}

/// `a · b + c` rounded to odd; the product of `a` and `b` must be an f64 (it is for formats up to f32).
#[inline(always)]
pub(super) fn multiply_add(a: f64, b: f64, c: f64, rounding: Rounding) -> f64 {
    sum(a * b, c, rounding)
}

/// `a + b` of f64 values, rounded as told.
pub(super) fn sum_rounded(a: f64, b: f64, rounding: Rounding) -> f64 {
    let sum = a + b;
    if !sum.is_finite() {
        // An overflow of finite values stays finite where it is rounded towards zero.
        let inwards = match rounding {
            Rounding::Zero => true,
            Rounding::Down => sum > 0.0,
            Rounding::Up => sum < 0.0,
            Rounding::NearestEven | Rounding::NearestAway => false,
        };
        let overflow = sum.is_infinite() && a.is_finite() && b.is_finite();
        return if overflow && inwards { f64::MAX.copysign(sum) } else { sum };
    }
    if sum == 0.0 {
        return if rounding == Rounding::Down { signed_zero(a, b) } else { sum };
    }
    let error = sum_error(a, b, sum);
    match rounding {
        Rounding::Down if error < 0.0 => sum.next_down(),
        Rounding::Up if error > 0.0 => sum.next_up(),
        Rounding::Zero if error < 0.0 && sum > 0.0 => sum.next_down(),
        Rounding::Zero if error > 0.0 && sum < 0.0 => sum.next_up(),
        _ => sum,
    }
}

/// What is missing in `sum` to be `a + b`: Knuth's exact error.
#[inline(always)]
fn sum_error(a: f64, b: f64, sum: f64) -> f64 {
    let of_b = sum - a;
    (a - (sum - of_b)) + (b - of_b)
}

/// A sum of zero that is rounded down: -0, but of two +0.
fn signed_zero(a: f64, b: f64) -> f64 {
    if a.is_sign_positive() && b.is_sign_positive() { 0.0 } else { -0.0 }
}

/// `a / b` rounded to odd, for values of formats up to f32.
pub(super) fn quotient(a: f64, b: f64) -> f64 {
    let quotient = a / b;
    if !quotient.is_finite() || quotient == 0.0 || b.is_infinite() {
        return quotient;
    }
    // What is left over has the sign of the error times b's.
    let rest = (-quotient).mul_add(b, a);
    odd(quotient, if b < 0.0 { -rest } else { rest })
}

/// The square root rounded to odd, for values of formats up to f32.
pub(super) fn square_root(a: f64) -> f64 {
    let root = a.sqrt();
    if root.is_nan() || root.is_infinite() || root == 0.0 {
        return root;
    }
    odd(root, (-root).mul_add(root, a))
}

/// The neighbour of `value` with an odd last bit in the direction of the error, where there is an error.
#[inline(always)]
fn odd(value: f64, error: f64) -> f64 {
    let bits = value.to_bits();
    let inexact = (error > 0.0) | (error < 0.0);
    let even = bits & 1 == 0;
    // Away from zero where value and error have the same sign.
    let away = (error > 0.0) == (value > 0.0);
    let neighbour = if away { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    f64::from_bits(if inexact & even { neighbour } else { bits })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_f64_in_every_direction() {
        let tiny = f64::MIN_POSITIVE;
        assert_eq!(sum_rounded(1.0, tiny, Rounding::Zero), 1.0);
        assert_eq!(sum_rounded(1.0, tiny, Rounding::Up), 1f64.next_up());
        assert_eq!(sum_rounded(1.0, -tiny, Rounding::Zero), 1f64.next_down());
        assert_eq!(sum_rounded(-1.0, tiny, Rounding::Zero), (-1f64).next_up());
        assert_eq!(sum_rounded(f64::MAX, f64::MAX, Rounding::Zero), f64::MAX);
        assert_eq!(sum_rounded(f64::MAX, f64::MAX, Rounding::Up), f64::INFINITY);
        assert!(sum_rounded(1.0, -1.0, Rounding::Down).is_sign_negative());
        assert!(sum_rounded(1.0, -1.0, Rounding::Up).is_sign_positive());
    }

    #[test]
    fn fused_products_are_the_cpus() {
        let mut seed = 1u64;
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            f32::from_bits((seed >> 32) as u32)
        };
        for _ in 0..300_000 {
            let (a, b, c) = (next(), next(), next());
            let expected = a.mul_add(b, c);
            let result = multiply_add(f64::from(a), f64::from(b), f64::from(c), Rounding::NearestEven) as f32;
            assert!(
                expected.to_bits() == result.to_bits() || expected.is_nan() && result.is_nan(),
                "{a:e} {b:e} {c:e}: {result:e}, not {expected:e}"
            );
            // Products close to the summand, where it matters.
            let c = -(a * b).next_up();
            let expected = a.mul_add(b, c);
            let result = multiply_add(f64::from(a), f64::from(b), f64::from(c), Rounding::NearestEven) as f32;
            assert!(expected.to_bits() == result.to_bits() || expected.is_nan() && result.is_nan());
        }
    }

    #[test]
    fn quotients_and_roots_round_once() {
        let mut seed = 7u64;
        for _ in 0..100_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (a, b) = (f32::from_bits((seed >> 32) as u32), f32::from_bits((seed >> 16) as u32));
            let result = quotient(f64::from(a), f64::from(b)) as f32;
            assert!((a / b).to_bits() == result.to_bits() || (a / b).is_nan() && result.is_nan());
            let result = square_root(f64::from(a)) as f32;
            assert!(a.sqrt().to_bits() == result.to_bits() || a.sqrt().is_nan() && result.is_nan());
        }
    }
}
