//! What quantisation writes is what linear layers read, and what happens before it cancels in the product.

use super::options::FORMATS;
use crate::{
    case::{Fault, Shown, Verdict},
    judge::judge,
    ledger::denied,
    oracle::quantize::prepared,
    random::Rng,
    tolerance::Bound,
};
use halite_kernels::{
    Backend, DType, Stream, Tensor,
    linear::{Activations, Epilogue, HostWeights, LinearArgs, LinearSpec, Quantized},
    quantize::{
        QuantizeArgs, QuantizeSpec, Rotation, Smoothing, per_channel, rotate_weights, smooth_weights,
        smoothing_factors,
    },
};

const ROWS: usize = 5;
const K: usize = 96;
const N: usize = 9;
const BLOCK: usize = 32;
/// A column fifty times as large as the others.
const LARGE: usize = 7;

pub(super) fn bodies<B: Backend>() -> Vec<Shown<B>> {
    vec![
        ("integers straight into a linear layer", |device| every_format(device, |spec| spec)),
        ("smoothed activations and weights", |device| every_format(device, QuantizeSpec::with_smoothing)),
        ("rotated activations and weights", |device| every_format(device, |spec| spec.with_hadamard(BLOCK))),
        ("smoothed, then rotated", |device| {
            every_format(device, |spec| spec.with_smoothing().with_hadamard(BLOCK))
        }),
        ("an outlier column in float", |device| every_format(device, |spec| spec.with_outlier_columns(1))),
    ]
}

fn every_format<B: Backend>(device: &B, option: fn(QuantizeSpec) -> QuantizeSpec) -> Verdict {
    FORMATS.into_iter().try_for_each(|format| {
        let spec = option(QuantizeSpec::new(DType::F32).with_output(format));
        product(device, &spec).map_err(|Fault(fault)| Fault(format!("{spec:?}: {fault}")))
    })
}

/// The layer in integers against the product of the floats that it began with.
fn product<B: Backend>(device: &B, spec: &QuantizeSpec) -> Verdict {
    let mut rng = Rng::new(17);
    let mut x = rng.aways(ROWS * K);
    x.chunks_exact_mut(K).for_each(|row| row[LARGE] *= 50.0);
    let w = rng.aways(N * K);
    let largest: Vec<f32> =
        (0..K).map(|k| x.chunks_exact(K).fold(0f32, |largest, row| largest.max(row[k].abs()))).collect();
    let factors = smoothing_factors(&largest, &w, 0.5)?;
    let mut turned = w.clone();
    let smoothed = spec.smoothing == Smoothing::PerColumn;
    if smoothed {
        smooth_weights(&mut turned, &factors)?;
    }
    if spec.rotation != Rotation::None {
        rotate_weights(&mut turned, K, BLOCK)?;
    }
    let aside = spec.outlier_columns > 0;
    let values: Vec<f32> = turned.chunks_exact(K).map(|row| row[LARGE]).collect();
    if aside {
        turned.chunks_exact_mut(K).for_each(|row| row[LARGE] = 0.0);
    }
    let weights = per_channel(&turned, K)?;

    let mut layer = LinearSpec::w8a8(K, N).with_activation_format(spec.output);
    if aside {
        layer = layer.with_outliers(1, DType::F32);
    }
    if denied(device.quantize_supports(spec)) || denied(device.linear_supports(&layer)) {
        return Ok(());
    }
    let all = HostWeights::Int8PerChannel { q: &weights.q, scales: &weights.scales };
    let host = HostWeights::WithOutliers { weights: &all, columns: &[LARGE as u32], values: &values };
    let stream = &mut device.stream()?;
    let packed = device.linear_pack(stream, if aside { host } else { all }.check(&layer)?)?;

    let input = Tensor::<B>::from_slice(stream, &x, &[ROWS, K])?;
    let q = Tensor::<B>::new(device, spec.output.dtype(), &[ROWS, K])?;
    let dims = spec.output.scale_dims(ROWS, K);
    let (scales, zeros) =
        (Tensor::<B>::new(device, DType::F32, &dims)?, Tensor::<B>::new(device, DType::I32, &dims)?);
    let factor_tensor = Tensor::<B>::from_slice(stream, &factors, &[K])?;
    let columns = Tensor::<B>::from_slice(stream, &[LARGE as i32], &[1])?;
    let kept = Tensor::<B>::new(device, DType::F32, &[ROWS, 1])?;
    let mut args = QuantizeArgs::new(spec, &input, &q, &scales);
    let mut operand = Quantized::new(&q, &scales);
    if spec.output.has_zero_points() {
        (args, operand) = (args.with_zero_points(&zeros), operand.with_zero_points(&zeros));
    }
    if smoothed {
        args = args.with_smoothing(&factor_tensor);
    }
    if aside {
        (args, operand) = (args.with_outliers(&columns, &kept), operand.with_outliers(&kept));
    }
    let workspace = device.quantize_workspace(spec, ROWS, K).max(device.linear_workspace(&packed, ROWS));
    stream.reserve(workspace)?;
    device.quantize(stream, args.check()?)?;
    let out = Tensor::<B>::new(device, DType::F32, &[ROWS, N])?;
    let (x_args, epilogue) = (Activations::Quantized(operand), Epilogue::default());
    device.linear(stream, LinearArgs::<B> { x: x_args, weights: &packed, epilogue, out: &out }.check()?)?;

    let exact: Vec<f64> = x.iter().copied().map(f64::from).collect();
    let factors: Vec<f64> = factors.into_iter().map(f64::from).collect();
    let outliers = if aside { vec![LARGE as i32] } else { Vec::new() };
    let block = (spec.rotation != Rotation::None).then_some(BLOCK);
    let bounds: Vec<Bound> = exact.iter().map(|&x| Bound::exact(x)).collect();
    let prepared = prepared(&bounds, K, smoothed.then_some(&factors[..]), &outliers, block);
    // The largest scale of the activations: a step of it, a half step of the weight's, and F32.
    let step = scales.to_vec::<f32>(stream)?.into_iter().fold(0f32, f32::max);
    let mut expected = Vec::new();
    for (x, prepared) in exact.chunks_exact(K).zip(prepared.chunks_exact(K)) {
        for (n, (w, turned)) in w.chunks_exact(K).zip(turned.chunks_exact(K)).enumerate() {
            let half = f64::from(weights.scales[n]) / 2.0;
            let rounding = prepared.iter().zip(turned).map(|(x, w)| {
                let w = f64::from(w.abs());
                (x.value.abs() * half + (w + half) * f64::from(step)) * 1.001
            });
            let value = x.iter().zip(w).map(|(x, &w)| x * f64::from(w)).sum();
            let size: f64 = x.iter().map(|x| x.abs()).sum();
            expected.push(Bound { value, error: rounding.sum::<f64>() + 1e-5 * size });
        }
    }
    let got: Vec<f64> = out.to_vec::<f32>(stream)?.into_iter().map(f64::from).collect();
    judge("out", &[ROWS, N], &got, &expected)
}
