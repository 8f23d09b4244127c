//! A W8A8 linear layer: INT8 weights with a scale per output channel, INT8 activations with a scale per token.
//!
//! Weights are quantised on the host and packed once; activations are quantised on the device for each call. The
//! answer is compared with the same INT8 product in plain integers, which it must equal but for rounding, and with
//! the product before quantisation, which shows what INT8 costs.
//!
//! ```sh
//! cargo run -p halite --example w8a8_linear
//! ```

use halite::cpu::{Cpu, Options};
use halite::hal::{DType, Device, Stream, Tensor};
use halite::kernels::linear::{Activations, Epilogue, HostWeights, Linear, LinearArgs, LinearSpec};
use halite::kernels::quantize::{Quantize, QuantizeArgs, QuantizeSpec};

const TOKENS: usize = 3;
const IN_FEATURES: usize = 256;
const OUT_FEATURES: usize = 48;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Cpu::new(Options::default())?;
    let stream = &mut device.stream()?;

    // Once: weights to INT8, one scale a row (a row is an output channel), then packed for this device.
    let weights = numbers(OUT_FEATURES * IN_FEATURES, 1);
    let (w_q, w_scales) = quantise_rows(&weights, IN_FEATURES);
    let spec = LinearSpec::w8a8(IN_FEATURES, OUT_FEATURES);
    let host = HostWeights::Int8PerChannel { q: &w_q, scales: &w_scales };
    let packed = device.linear_pack(stream, host.check(&spec)?)?;
    stream.reserve(device.linear_workspace(&packed, TOKENS))?;

    // Each call: activations to INT8, one scale a token, then the product.
    let x = numbers(TOKENS * IN_FEATURES, 2);
    let x_tensor = Tensor::from_slice(stream, &x, &[TOKENS, IN_FEATURES])?;
    let q = Tensor::new(&device, DType::I8, &[TOKENS, IN_FEATURES])?;
    let scales = Tensor::new(&device, DType::F32, &[TOKENS])?;
    let quantize = QuantizeSpec::new(DType::F32);
    let args = QuantizeArgs::new(&quantize, &x_tensor, &q, &scales);
    device.quantize(stream, args.check()?)?;
    let out = Tensor::new(&device, DType::F32, &[TOKENS, OUT_FEATURES])?;
    let x_int8 = Activations::int8_per_token(&q, &scales);
    let args = LinearArgs { x: x_int8, weights: &packed, epilogue: Epilogue::default(), out: &out };
    device.linear(stream, args.check()?)?;

    let answer = out.to_vec::<f32>(stream)?;
    let (x_q, x_scales) = (q.to_vec::<i8>(stream)?, scales.to_vec::<f32>(stream)?);
    let in_int8 = product(|t, n| {
        let term = |k| i32::from(x_q[t * IN_FEATURES + k]) * i32::from(w_q[n * IN_FEATURES + k]);
        let sum: i32 = (0..IN_FEATURES).map(term).sum();
        f64::from(sum) * f64::from(w_scales[n]) * f64::from(x_scales[t])
    });
    let in_float = product(|t, n| {
        let term = |k| f64::from(x[t * IN_FEATURES + k]) * f64::from(weights[n * IN_FEATURES + k]);
        (0..IN_FEATURES).map(term).sum()
    });
    let (same, cost) = (furthest(&answer, &in_int8), furthest(&answer, &in_float));
    let largest = in_float.iter().fold(0.0f64, |largest, y| largest.max(y.abs()));
    println!("{}: [{TOKENS}, {IN_FEATURES}] x [{IN_FEATURES}, {OUT_FEATURES}]", device.info().name);
    println!("first token, first channels: {:.4?}", &answer[..4]);
    println!("largest difference from the same product in plain integers: {same:.1e}");
    println!(
        "largest difference from the product before quantisation: {cost:.1e}, of outputs up to {largest:.1}"
    );
    if same < 1e-4 && cost < 0.05 * largest { Ok(()) } else { Err("the answer is wrong".into()) }
}

/// Symmetric INT8 with one scale a row, as docs/numerics.md has it.
fn quantise_rows(values: &[f32], columns: usize) -> (Vec<i8>, Vec<f32>) {
    let mut q = Vec::with_capacity(values.len());
    let scales = values.chunks_exact(columns).map(|row| {
        let scale = (row.iter().fold(0.0f32, |max, x| max.max(x.abs())) / 127.0).max(f32::MIN_POSITIVE);
        q.extend(row.iter().map(|x| (x * (1.0 / scale)).round_ties_even().clamp(-127.0, 127.0) as i8));
        scale
    });
    let scales = scales.collect();
    (q, scales)
}

/// `count` numbers between -1 and 1, in no order that a sum could profit from.
fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// `[TOKENS, OUT_FEATURES]` of `f(token, channel)`.
fn product(f: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    (0..TOKENS).flat_map(|t| (0..OUT_FEATURES).map(move |n| (t, n))).map(|(t, n)| f(t, n)).collect()
}

/// The largest difference; by total order a NaN is the largest.
fn furthest(answer: &[f32], expected: &[f64]) -> f64 {
    let differences = answer.iter().zip(expected).map(|(a, b)| (f64::from(*a) - b).abs());
    differences.max_by(f64::total_cmp).unwrap_or(f64::NAN)
}
