//! Exponential, logarithm and hyperbolic tangent of 16 lanes.
//!
//! Polynomials are minimax fits made for these intervals (Remez exchange, 40 digits, then rounded to `f32`); the error
//! of each fit is below 2^-28, so what remains is the rounding of a handful of operations. The bounds in the docs are
//! asserted against `f64` over the whole range, in every tier.

use super::Isa;

/// Horner's rule, highest power first.
#[inline(always)]
pub(super) fn polynomial<I: Isa, const N: usize>(isa: I, x: I::F32, coefficients: [f32; N]) -> I::F32 {
    let mut sum = isa.splat(coefficients[0]);
    for &c in &coefficients[1..] {
        sum = isa.mul_add(sum, x, isa.splat(c));
    }
    sum
}

/// `e^x` within 2 ULP. Minus infinity gives 0, what `f32` cannot hold gives infinity, NaN gives NaN; results below
/// the normal range are rounded to subnormal values.
#[inline(always)]
pub(crate) fn exp<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    // Outside these limits the result is 0 or infinity anyway. `x` comes second so that NaN stays.
    let x = isa.min(isa.splat(90.0), isa.max(isa.splat(-105.0), x));
    let n = isa.round(isa.mul(x, isa.splat(std::f32::consts::LOG2_E)));
    // x - n ln 2, with ln 2 in two parts: the first has 9 bits, so its product with n is exact without FMA too.
    let r = isa.mul_add(n, isa.splat(-6.933_594e-1), x);
    let r = isa.mul_add(n, isa.splat(2.121_944_4e-4), r);
    let tail =
        polynomial(isa, r, [1.381_453_8e-3, 8.368_745e-3, 4.166_839e-2, 1.666_652_1e-1, 4.999_999_4e-1]);
    let p = isa.mul_add(isa.mul(r, r), tail, r);
    isa.scale_by_power(isa.add(p, isa.splat(1.0)), n)
}

/// Natural logarithm within 2 ULP. Zero gives minus infinity, infinity gives infinity, NaN and what is below zero
/// give NaN.
#[inline(always)]
pub(crate) fn ln<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    let one = isa.splat(1.0);
    // Subnormal values have no exponent to take: lift them by 2^24.
    let small = isa.less(x, isa.splat(f32::MIN_POSITIVE));
    let lifted = isa.select(small, isa.mul(x, isa.splat(16_777_216.0)), x);
    let lift = isa.select(small, isa.splat(-24.0), isa.splat(0.0));
    // x = m 2^e with m in [sqrt(1/2), sqrt(2)): the bits less those of sqrt(1/2) have e in their exponent.
    const ROOT: i32 = 0x3f35_04f3;
    let offset = isa.sub_i32(isa.to_bits(lifted), isa.splat_i32(ROOT));
    let mantissa = isa.add_i32(isa.and(offset, isa.splat_i32(0x007f_ffff)), isa.splat_i32(ROOT));
    let exponent = isa.shift_right::<23>(offset);
    // The shift brought zeros in: bit 8 is the sign of e.
    let sign = isa.shift_left::<1>(isa.and(exponent, isa.splat_i32(0x100)));
    let e = isa.add(isa.to_f32(isa.sub_i32(exponent, sign)), lift);
    let f = isa.sub(isa.of_bits(mantissa), one);
    let square = isa.mul(f, f);
    let tail = polynomial(
        isa,
        f,
        [
            6.747_693e-2,
            -1.167_746_8e-1,
            1.188_868_8e-1,
            -1.240_534_8e-1,
            1.421_945_5e-1,
            -1.666_800_5e-1,
            2.000_212_4e-1,
            -2.500_001e-1,
            3.333_331_3e-1,
        ],
    );
    // ln x = e ln 2 + (f - f^2 / 2 + f^3 tail), smallest terms first, ln 2 in the two parts of `exp`.
    let low = isa.mul_add(isa.mul(square, f), tail, isa.mul(e, isa.splat(-2.121_944_4e-4)));
    let low = isa.mul_add(square, isa.splat(-0.5), low);
    let y = isa.mul_add(e, isa.splat(6.933_594e-1), isa.add(f, low));
    let infinity = isa.splat(f32::INFINITY);
    let y = isa.select(isa.equal(x, infinity), infinity, y);
    let y = isa.select(isa.equal(x, isa.splat(0.0)), isa.splat(f32::NEG_INFINITY), y);
    let invalid = isa.less(x, isa.splat(0.0)) | !isa.equal(x, x);
    isa.select(invalid, isa.splat(f32::NAN), y)
}

/// Hyperbolic tangent within 2 ULP, odd to the last bit: -0 gives -0. Infinities give 1 and -1, NaN gives NaN.
#[inline(always)]
pub(crate) fn tanh<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    let one = isa.splat(1.0);
    let t = isa.abs(x);
    // Below 0.6, where the other form would cancel: t + t^3 P(t^2).
    let square = isa.mul(t, t);
    let tail =
        polynomial(isa, square, [-5.895_158e-3, 2.079_597_1e-2, -5.378_383e-2, 1.333_192_4e-1, -3.333_33e-1]);
    let near = isa.mul_add(isa.mul(t, square), tail, t);
    // From there: 1 - 2 / (e^2t + 1), which is 1 where the exponential is infinite.
    let far = isa.sub(one, isa.div(isa.splat(2.0), isa.add(exp(isa, isa.add(t, t)), one)));
    let size = isa.select(isa.less(t, isa.splat(0.6)), near, far);
    // The size has no sign bit, so adding x's puts it there.
    let sign = isa.and(isa.to_bits(x), isa.splat_i32(i32::MIN));
    isa.of_bits(isa.add_i32(isa.to_bits(size), sign))
}

#[cfg(test)]
#[path = "math_tests.rs"]
mod tests;
