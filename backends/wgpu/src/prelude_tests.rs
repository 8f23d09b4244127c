//! What every kernel uses, against the host, on the adapter that the tests run on.

use crate::{
    device::{Options, Wgpu},
    launch::{Launch, Shader, spread},
    testing,
};
use half::{bf16, f16};
use halite_hal::{DType, Device, Result, Tensor};

static EACH: Shader = Shader { name: "prelude", source: &[include_str!("prelude_tests.wgsl")] };

/// `FUNCTION` of each pair of elements.
fn each(function: u32, x: &[f32], y: &[f32]) -> Result<Vec<f32>> {
    let device = Wgpu::new(Options::default())?;
    let stream = &mut device.stream()?;
    let x = Tensor::from_slice(stream, x, &[x.len()])?;
    let y = Tensor::from_slice(stream, y, &[y.len()])?;
    let out = Tensor::<Wgpu>::new(&device, DType::F32, x.dims())?;
    let count = x.dims()[0];
    let launch = Launch::new(&EACH)
        .input("x", &x)
        .input("y", &y)
        .output("out", &out)
        .constant("FUNCTION", function)
        .size("count", count);
    stream.launch(launch, spread(count.div_ceil(64)))?;
    out.to_vec(stream)
}

/// Distance in units of the last place of what is expected, which is a normal number.
fn ulps(got: f32, expected: f64) -> f64 {
    let unit = 2f64.powi(expected.abs().log2().floor() as i32 - 23);
    (f64::from(got) - expected).abs() / unit
}

fn worst(function: u32, x: &[f32], expected: impl Fn(f64) -> f64) -> Result<(f64, f32)> {
    let got = each(function, x, x)?;
    let errors = x.iter().zip(got).map(|(&x, got)| (ulps(got, expected(f64::from(x))), x));
    Ok(errors.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::NAN, 0.0)))
}

/// Values of every magnitude from 2^`low` to 2^`high`, of both signs.
fn magnitudes(low: i32, high: i32) -> Vec<f32> {
    let of = |i: i32| 2f32.powf(low as f32 + (high - low) as f32 * i as f32 / 5000.0);
    (0..5000).flat_map(|i| [of(i), -of(i)]).collect()
}

#[test]
fn functions_are_near_the_exact_ones() -> Result<()> {
    if testing::gpu("the prelude").is_none() {
        return Ok(());
    }
    let powers: Vec<f32> = (-8730..8872).map(|i| i as f32 / 100.0).collect();
    let (error, at) = worst(0, &powers, f64::exp)?;
    assert!(error <= 2.0, "e^{at}: {error} ULP");
    let positive: Vec<f32> = magnitudes(-125, 127).into_iter().filter(|&x| x > 0.0).collect();
    let near_one: Vec<f32> = (1..3000).map(|i| 0.5 + i as f32 / 2000.0).filter(|&x| x != 1.0).collect();
    for x in [positive, near_one] {
        let (error, at) = worst(1, &x, f64::ln)?;
        assert!(error <= 2.5, "ln {at}: {error} ULP");
    }
    let (error, at) = worst(2, &magnitudes(-30, 5), f64::tanh)?;
    assert!(error <= 3.0, "tanh {at}: {error} ULP");
    Ok(())
}

#[test]
fn functions_at_their_ends() -> Result<()> {
    if testing::gpu("the prelude").is_none() {
        return Ok(());
    }
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let of = |function, x: &[f32]| each(function, x, x);
    let e = of(0, &[nan, inf, -inf, 0.0, -0.0, 200.0, -200.0])?;
    assert!(e[0].is_nan() && e[1..] == [inf, 0.0, 1.0, 1.0, inf, 0.0], "e^x: {e:?}");
    let ln = of(1, &[nan, -1.0, -inf, inf, 0.0, 1.0])?;
    assert!(ln[..3].iter().all(|x| x.is_nan()) && ln[3..] == [inf, -inf, 0.0], "ln: {ln:?}");
    let tanh = of(2, &[nan, inf, -inf, 0.0, 50.0])?;
    assert!(tanh[0].is_nan() && tanh[1..] == [1.0, -1.0, 0.0, 1.0], "tanh: {tanh:?}");
    Ok(())
}

#[test]
fn quotients_are_rounded_as_ieee_rounds_them() -> Result<()> {
    if testing::gpu("the prelude").is_none() {
        return Ok(());
    }
    let x = magnitudes(-40, 40);
    let y: Vec<f32> = x.iter().rev().map(|y| y * 1.234_567).collect();
    let got = each(3, &x, &y)?;
    for ((x, y), got) in x.iter().zip(&y).zip(got) {
        assert_eq!(got.to_bits(), (x / y).to_bits(), "{x:e} / {y:e} is {got:e}");
    }
    Ok(())
}

/// All of them, NaN included: what is stored comes back, whether a number is taken apart or put together.
#[test]
fn half_precision_goes_both_ways() -> Result<()> {
    if testing::gpu("the prelude").is_none() {
        return Ok(());
    }
    let all: Vec<f32> = (0..=u16::MAX).map(|bits| f32::from_bits(bits.into())).collect();
    let (f16s, bf16s) = (each(4, &all, &all)?, each(5, &all, &all)?);
    for bits in 0..=u16::MAX {
        let [got, expected] = [f16s[usize::from(bits)], f16::from_bits(bits).to_f32()];
        assert!(got == expected || got.is_nan() && expected.is_nan(), "F16 {bits:04x} is {got}");
        let back = f16::from_bits(bf16s[usize::from(bits)].to_bits() as u16);
        let same = f16::from_f32(f16::from_bits(bits).to_f32());
        assert!(back == same || back.is_nan() && same.is_nan(), "F16 {bits:04x} comes back as {back:?}");
    }
    // Halfway between two numbers, and next to it on both sides: to the even one, or to the nearer.
    let ends = [
        65_519.9f32,
        65_520.0,
        -65_520.0,
        5.96e-8,
        2.98e-8,
        2.981e-8,
        6.097e-5,
        1.0 + 4.883e-4,
        1.0 + 1.4648e-3,
    ];
    let around = |x: &f32| [-1i32, 0, 1].map(|d| f32::from_bits(x.to_bits().wrapping_add_signed(d)));
    let x: Vec<f32> = ends.iter().flat_map(around).chain(magnitudes(-30, 20)).collect();
    let (f16s, bf16s) = (each(6, &x, &x)?, each(7, &x, &x)?);
    for (i, &x) in x.iter().enumerate() {
        assert_eq!(f16s[i].to_bits(), u32::from(f16::from_f32(x).to_bits()), "F16 of {x:e}");
        assert_eq!(bf16s[i].to_bits(), u32::from(bf16::from_f32(x).to_bits()), "BF16 of {x:e}");
    }
    Ok(())
}
