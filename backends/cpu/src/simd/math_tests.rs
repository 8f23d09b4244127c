//! Against `f64`, over the whole range.

use super::*;
use crate::simd::{Kernel, LANES, Tier, function::function};

function!(Exp, exp);
function!(Ln, ln);
function!(Tanh, tanh);

/// The error in units of the last place of the right result, a subnormal one's included.
fn ulps(got: f32, want: f64) -> f64 {
    if want.abs() >= f64::from(f32::MAX) * (1.0 + 2f64.powi(-25)) {
        return if f64::from(got) == f64::INFINITY.copysign(want) { 0.0 } else { f64::INFINITY };
    }
    let exponent = want.abs().log2().floor().max(-126.0);
    (f64::from(got) - want).abs() / 2f64.powf(exponent - 23.0)
}

/// The greatest error over every `step`-th float from `from` to `to`.
fn worst<K: Kernel<Output = [f32; LANES]>>(
    tier: Tier,
    kernel: fn([f32; LANES]) -> K,
    reference: fn(f64) -> f64,
    inputs: impl Iterator<Item = f32>,
) -> (f64, f32) {
    let mut worst = (0.0, 0.0);
    for x in inputs {
        let got = tier.run(kernel([x; LANES]))[3];
        let error = ulps(got, reference(f64::from(x)));
        if error.is_nan() || error > worst.0 {
            worst = (error, x);
        }
    }
    worst
}

fn both_signs(step: usize) -> impl Iterator<Item = f32> {
    (0..f32::INFINITY.to_bits()).step_by(step).flat_map(|bits| [f32::from_bits(bits), -f32::from_bits(bits)])
}

/// Densely where the result is neither 0 nor infinity.
fn between(from: f32, to: f32) -> impl Iterator<Item = f32> {
    let steps = 400_000;
    (0..=steps).map(move |i| from + (to - from) * i as f32 / steps as f32)
}

#[test]
fn exp_is_within_2_ulp() {
    for tier in Tier::available() {
        let (error, x) = worst(tier, Exp, f64::exp, both_signs(7919).chain(between(-106.0, 91.0)));
        assert!(error < 2.0, "{tier} exp({x:e}) is {error} ULP off");
    }
}

#[test]
fn ln_is_within_2_ulp() {
    for tier in Tier::available() {
        let inputs = (1..f32::INFINITY.to_bits()).step_by(3989).map(f32::from_bits).chain(between(0.5, 2.0));
        let (error, x) = worst(tier, Ln, f64::ln, inputs);
        assert!(error < 2.0, "{tier} ln({x:e}) is {error} ULP off");
    }
}

#[test]
fn tanh_is_within_2_ulp() {
    for tier in Tier::available() {
        let inputs = both_signs(7919).chain(between(-1.5, 1.5)).chain(between(-10.0, 10.0));
        let (error, x) = worst(tier, Tanh, f64::tanh, inputs);
        assert!(error < 2.0, "{tier} tanh({x:e}) is {error} ULP off");
    }
}

#[test]
fn tanh_is_odd_and_ends_at_1() {
    for tier in Tier::available() {
        let tanh = |x: f32| tier.run(Tanh([x; LANES]))[9];
        for x in both_signs(30_011).chain([0.0, f32::INFINITY, 0.6, 1e-45, 90.0]) {
            let y = tanh(x);
            assert!(y.abs() <= 1.0 && y.to_bits() == (-tanh(-x)).to_bits(), "{tier} tanh({x:e}) is {y:e}");
        }
        assert_eq!(tanh(-0.0).to_bits(), (-0.0f32).to_bits(), "{tier}");
        assert_eq!((tanh(f32::INFINITY), tanh(f32::MIN), tanh(9.1)), (1.0, -1.0, 1.0), "{tier}");
        assert!(tanh(f32::NAN).is_nan() && tanh(-f32::NAN).is_nan(), "{tier}");
    }
}

#[test]
fn special_values() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    for tier in Tier::available() {
        let at = |x: f32| (tier.run(Exp([x; LANES]))[0], tier.run(Ln([x; LANES]))[0]);
        assert_eq!(at(0.0), (1.0, -inf), "{tier}");
        assert_eq!(at(-0.0), (1.0, -inf), "{tier}");
        assert_eq!(at(inf), (inf, inf), "{tier}");
        assert_eq!(at(f32::MAX).0, inf, "{tier}");
        assert_eq!(at(-1e30).0, 0.0, "{tier}");
        assert_eq!(at(1.0).1.to_bits(), 0, "{tier}");
        assert!(at(-inf).0 == 0.0 && at(-inf).1.is_nan(), "{tier}");
        assert!(at(nan).0.is_nan() && at(nan).1.is_nan(), "{tier}");
        assert!(at(-1.0).1.is_nan() && at(-1e-45).1.is_nan(), "{tier}");
    }
}

#[test]
fn lanes_do_not_mix() {
    for tier in Tier::available() {
        let x: [f32; LANES] = std::array::from_fn(|i| i as f32 - 8.0);
        let all = tier.run(Exp(x));
        for i in 0..LANES {
            assert_eq!(all[i].to_bits(), tier.run(Exp([x[i]; LANES]))[0].to_bits(), "{tier} lane {i}");
        }
    }
}
