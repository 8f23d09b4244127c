//! Activation functions of 16 lanes, on top of [`exp`].

use super::{
    Isa,
    math::{exp, polynomial},
};

/// `x / (1 + e^-x)` (SiLU, also called swish) within 3 ULP, or -0 below -88, where `e^-x` leaves `f32`.
#[inline(always)]
pub(crate) fn silu<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    gate(isa, x, x)
}

/// `x * sigmoid(at)`. Where both are minus infinity it is the limit: a finite `x` that far down gives -0 instead of NaN.
#[inline(always)]
fn gate<I: Isa>(isa: I, x: I::F32, at: I::F32) -> I::F32 {
    let falls = isa.less(at, isa.splat(0.0));
    let x = isa.select(falls, isa.max(isa.splat(f32::MIN), x), x);
    let one = isa.splat(1.0);
    isa.div(x, isa.add(one, exp(isa, isa.sub(isa.splat(0.0), at))))
}

/// `x * sigmoid(alpha * x)`, relatively within 3 ULP and what rounding `alpha * x` costs: `|alpha * x|` times 2^-24.
#[inline(always)]
pub(crate) fn sigmoid_gate<I: Isa>(isa: I, x: I::F32, alpha: f32) -> I::F32 {
    gate(isa, x, isa.mul(x, isa.splat(alpha)))
}

/// `1 / (1 + e^-x)`.
#[inline(always)]
pub(crate) fn sigmoid<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    let one = isa.splat(1.0);
    isa.div(one, isa.add(one, exp(isa, isa.sub(isa.splat(0.0), x))))
}

/// `max(x, 0)`; NaN stays.
#[inline(always)]
pub(crate) fn relu<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    isa.max(isa.splat(0.0), x)
}

/// GELU in its `tanh` form, `x / 2 (1 + tanh(sqrt(2 / pi) (x + 4.471_5e-2 x^3)))`.
///
/// Computed as `x sigmoid(2 u)`, which is the same and does not cancel below zero. The error is that of [`silu`]
/// plus what rounding `u` costs there: relatively `2 |u|` times 2^-22.
#[inline(always)]
pub(crate) fn gelu_tanh<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    // 2 sqrt(2 / pi), and 4.471_5e-2 times it.
    let inner = isa.mul_add(isa.mul(x, x), isa.splat(7.135_481_4e-2), isa.splat(1.595_769));
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
            7.847_219e-5,
            -8.008_345_6e-4,
            5.188_136e-3,
            -2.685_372_2e-2,
            1.128_358_3e-1,
            -3.761_262_6e-1,
            std::f32::consts::FRAC_2_SQRT_PI,
        ],
    );
    let near = isa.mul_add(isa.mul(t, series), isa.splat(-0.5), half);
    // From 1: erfc(t) = s e^(-t^2) C(s) with s = 1 / (1 + t / 2).
    let s = isa.div(one, isa.mul_add(t, half, one));
    let fraction = polynomial(
        isa,
        s,
        [
            -3.836_472_3e-2,
            2.202_821_1e-1,
            -4.047_303_8e-1,
            2.219_010_1e-1,
            -4.998_370_5e-3,
            1.981_209e-1,
            2.435_435_8e-1,
            2.823_729e-1,
            2.820_847e-1,
        ],
    );
    let power = exp(isa, isa.sub(isa.splat(0.0), square));
    let far = isa.mul(isa.mul(isa.mul(s, half), fraction), power);
    let lower = isa.select(isa.less(t, one), near, far); // Phi(-|x|)
    let phi = isa.select(isa.less(x, isa.splat(0.0)), lower, isa.sub(one, lower));
    // The limit at minus infinity, as in `gate`; NaN stays since it comes second.
    isa.mul(isa.max(isa.splat(f32::MIN), x), phi)
}

#[cfg(test)]
#[path = "activation_tests.rs"]
mod tests;
