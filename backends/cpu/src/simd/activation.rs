//! Activation functions of 16 lanes, on top of [`exp`].

use super::{
    Isa,
    math::{exp, polynomial},
};

/// `1 / (1 + e^-x)` within 3 ULP, or 2^-126 below -87, where `e^-x` leaves `f32`.
#[inline(always)]
pub(crate) fn sigmoid<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    let one = isa.splat(1.0);
    isa.div(one, isa.add(one, exp(isa, isa.sub(isa.splat(0.0), x))))
}

/// `x / (1 + e^-x)` (SiLU, also called swish), with the error of [`sigmoid`]. Minus infinity gives -0.
#[inline(always)]
pub(crate) fn silu<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    gate(isa, x, x)
}

/// `x * sigmoid(at)`, with its limit where `x` is minus infinity: a finite `x` that far down gives -0 instead of NaN.
#[inline(always)]
fn gate<I: Isa>(isa: I, x: I::F32, at: I::F32) -> I::F32 {
    let x = isa.max(isa.splat(-1e30), x);
    let one = isa.splat(1.0);
    isa.div(x, isa.add(one, exp(isa, isa.sub(isa.splat(0.0), at))))
}

/// Hyperbolic tangent within 3 ULP.
#[inline(always)]
pub(crate) fn tanh<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    let size = isa.abs(x);
    // Near zero 1 - 2 / (e^2|x| + 1) would cancel: x + x^3 T(x^2) there.
    let square = isa.mul(x, x);
    let tail = polynomial(
        isa,
        square,
        [-5.702_610_128e-3, 2.063_704_468e-2, -5.373_911_56e-2, 1.333_143_562e-1, -3.333_328_068e-1],
    );
    let near = isa.mul_add(isa.mul(square, x), tail, x);
    let one = isa.splat(1.0);
    let power = exp(isa, isa.add(size, size));
    let far = isa.sub(one, isa.div(isa.splat(2.0), isa.add(power, one)));
    let far = isa.select(isa.less(x, isa.splat(0.0)), isa.sub(isa.splat(0.0), far), far);
    isa.select(isa.less(size, isa.splat(0.625)), near, far)
}

/// GELU in its `tanh` form, `x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`.
///
/// Computed as `x sigmoid(2 u)`, which is the same and does not cancel below zero. The error is that of [`sigmoid`]
/// plus what rounding `u` costs there: relatively `2 |u|` times 2^-22.
#[inline(always)]
pub(crate) fn gelu_tanh<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    // 2 sqrt(2 / pi), and 0.044715 times it.
    let inner = isa.mul_add(isa.mul(x, x), isa.splat(0.071_354_814), isa.splat(1.595_769_1));
    gate(isa, x, isa.mul(x, inner))
}

/// GELU, `x Phi(x)` with the normal distribution `Phi(x) = (1 + erf(x / sqrt 2)) / 2`.
///
/// The relative error is below `(1 + x^2 / 2)` times 2^-21; of `x^2` because `e^(-x^2 / 2)` carries the rounding of
/// its exponent.
#[inline(always)]
pub(crate) fn gelu_erf<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    let (one, half) = (isa.splat(1.0), isa.splat(0.5));
    let t = isa.mul(isa.abs(x), isa.splat(std::f32::consts::FRAC_1_SQRT_2));
    let square = isa.mul(t, t);
    // Below 1: erf(t) = t E(t^2).
    let series = polynomial(
        isa,
        square,
        [
            7.847_219_24e-5,
            -8.008_345_612e-4,
            5.188_135_896e-3,
            -2.685_372_159e-2,
            1.128_358_319e-1,
            -3.761_262_596e-1,
            1.128_379_107,
        ],
    );
    let near = isa.mul_add(isa.mul(t, series), isa.splat(-0.5), half);
    // From 1: erfc(t) = s e^(-t^2) C(s) with s = 1 / (1 + t / 2).
    let s = isa.div(one, isa.mul_add(t, half, one));
    let fraction = polynomial(
        isa,
        s,
        [
            -3.836_472_332e-2,
            2.202_821_076e-1,
            -4.047_303_796e-1,
            2.219_010_144e-1,
            -4.998_370_539e-3,
            1.981_209_069e-1,
            2.435_435_802e-1,
            2.823_728_919e-1,
            2.820_847_034e-1,
        ],
    );
    let power = exp(isa, isa.sub(isa.splat(0.0), square));
    let far = isa.mul(isa.mul(isa.mul(s, half), fraction), power);
    let lower = isa.select(isa.less(t, one), near, far); // Phi(-|x|)
    let phi = isa.select(isa.less(x, isa.splat(0.0)), lower, isa.sub(one, lower));
    // The limit at minus infinity, as in `gate`; NaN stays since it comes second.
    isa.mul(isa.max(isa.splat(-1e30), x), phi)
}

#[cfg(test)]
#[path = "activation_tests.rs"]
mod tests;
