//! Against `f64`, over the whole range.

use super::*;
use crate::simd::{Kernel, LANES, Tier, function::function};

function!(Silu, silu);
function!(GeluTanh, gelu_tanh);
function!(GeluErf, gelu_erf);
function!(Relu, relu);

#[inline(always)]
fn quick_gelu<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    sigmoid_gate(isa, x, 1.702)
}

function!(QuickGelu, quick_gelu);

/// The complementary error function for `x >= 0`: the series below 2.5, the continued fraction from there.
fn erfc(x: f64) -> f64 {
    if x < 2.5 {
        let (mut term, mut sum) = (x, x);
        for n in 1..200 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        return 1.0 - sum * std::f64::consts::FRAC_2_SQRT_PI;
    }
    let mut fraction = x;
    for n in (1..200).rev() {
        fraction = x + f64::from(n) / 2.0 / fraction;
    }
    (-x * x).exp() / fraction * std::f64::consts::FRAC_2_SQRT_PI / 2.0
}

fn exact_gelu(x: f64) -> f64 {
    let lower = erfc(x.abs() / std::f64::consts::SQRT_2) / 2.0;
    x * if x < 0.0 { lower } else { 1.0 - lower }
}

fn exact_gelu_tanh(x: f64) -> f64 {
    let u = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
    x / (1.0 + (-2.0 * u).exp())
}

/// What a result may be off, relatively, besides 2^-126.
fn check<K: Kernel<Output = [f32; LANES]>>(
    name: &str,
    kernel: fn([f32; LANES]) -> K,
    reference: fn(f64) -> f64,
    bound: fn(f64) -> f64,
) {
    for tier in Tier::available() {
        let tiny = (0..200).map(|i| 2f32.powi(-i / 2) * (1.0 + i as f32 / 300.0));
        let inputs = (0..=200_000).map(|i| i as f32 / 2000.0).chain(tiny).chain([1e4, 1e30, f32::MAX]);
        for x in inputs.flat_map(|x| [x, -x]) {
            let got = f64::from(tier.run(kernel([x; LANES]))[5]);
            let want = reference(f64::from(x));
            let allowed = want.abs() * bound(f64::from(x)) + 2f64.powi(-126) * f64::from(x).abs().max(1.0);
            assert!((got - want).abs() <= allowed, "{tier} {name}({x:e}) is {got:e} instead of {want:e}");
        }
    }
}

const ULP: f64 = 1.0 / (1 << 23) as f64;

#[test]
fn silu_is_within_3_ulp() {
    check("silu", Silu, |x| x / (1.0 + (-x).exp()), |_| 3.0 * ULP);
}

#[test]
fn quick_gelu_keeps_its_bound() {
    let exact = |x: f64| x / (1.0 + (-f64::from(1.702f32) * x).exp());
    check("quick_gelu", QuickGelu, exact, |x| (3.0 + 1.702 * x.abs() / 2.0) * ULP);
}

#[test]
fn gelu_tanh_keeps_its_bound() {
    check("gelu_tanh", GeluTanh, exact_gelu_tanh, |x| {
        let u = 0.8 * (x.abs() + 0.045 * x.abs().powi(3));
        (3.0 + 4.0 * u) * ULP
    });
}

#[test]
fn gelu_erf_keeps_its_bound() {
    check("gelu_erf", GeluErf, exact_gelu, |x| (1.0 + x * x / 2.0) * 4.0 * ULP);
}

#[test]
fn special_values() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    for tier in Tier::available() {
        let at = |x: f32| {
            [
                tier.run(Silu([x; LANES]))[0],
                tier.run(GeluTanh([x; LANES]))[0],
                tier.run(GeluErf([x; LANES]))[0],
                tier.run(QuickGelu([x; LANES]))[0],
                tier.run(Relu([x; LANES]))[0],
            ]
        };
        assert_eq!(at(inf), [inf; 5], "{tier}");
        assert_eq!(at(-inf), [0.0; 5], "{tier}");
        assert_eq!(at(0.0), [0.0; 5], "{tier}");
        assert!(at(nan).iter().all(|y| y.is_nan()), "{tier}");
    }
}
