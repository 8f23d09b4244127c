//! `MatMulInteger`, `QLinearMatMul` and `DynamicQuantizeLinear`.

use super::fixture::{Array, Fixture};
use crate::{
    Fault, Verdict,
    judge::judge,
    oracle::{
        linear::{self, integers},
        quantize,
    },
    tolerance::{Bound, U},
};
use halite_hal::{Stream, Tensor};
use halite_kernels::{
    Backend, DType,
    linear::{
        ActivationFormat, Activations, Epilogue, HostWeights, LinearArgs, LinearSpec, OutputScale, Quantized,
        WeightFormat,
    },
    quantize::{QuantizeArgs, QuantizeSpec},
};

/// One product of two matrices of integers.
struct Product {
    spec: LinearSpec,
    /// `[rows, k]`, a scale and a zero point for all, or zero points for each row.
    x: integers::Integers,
    /// `[n, k]`, signed, with a scale and a zero point a row.
    w: integers::Integers,
    output_scale: Option<OutputScale>,
}

/// Which inputs are what.
struct Inputs {
    x: [&'static str; 2],
    x_scale: Option<&'static str>,
    w: [&'static str; 2],
    w_scale: Option<&'static str>,
}

fn dtype(fixture: &Fixture, tensor: &str) -> DType {
    if fixture.dtype(tensor) == Some("I8") { DType::I8 } else { DType::U8 }
}

/// The values of a tensor, or `default` where it is left out.
fn values(fixture: &Fixture, tensor: Option<&str>, default: f64) -> Result<Vec<f64>, Fault> {
    match tensor.filter(|tensor| fixture.has(tensor)) {
        Some(tensor) => Ok(fixture.array(tensor)?.values),
        None => Ok(vec![default]),
    }
}

/// The products of each pair of matrices.
fn products(fixture: &Fixture, inputs: &Inputs, output: DType) -> Result<Vec<Product>, Fault> {
    let [x, w] = [fixture.array(inputs.x[0])?, fixture.array(inputs.w[0])?];
    let (x_zeros, w_zeros) =
        (values(fixture, Some(inputs.x[1]), 0.0)?, values(fixture, Some(inputs.w[1]), 0.0)?);
    let (x_scale, w_scale) =
        (values(fixture, inputs.x_scale, 1.0)?[0], values(fixture, inputs.w_scale, 1.0)?[0]);
    let last = |array: &Array, from_end: usize| array.dims[array.dims.len() - from_end];
    let (rows, k, n) = (last(&x, 2), last(&x, 1), last(&w, 1));
    let x_type = dtype(fixture, inputs.x[0]);
    let format = match x_zeros.len() {
        1 => ActivationFormat::AsymmetricPerTensor(x_type),
        _ => ActivationFormat::AsymmetricPerToken(x_type),
    };
    let spec = LinearSpec::w8a8(k, n)
        .with_weights(WeightFormat::Int8PerChannelAsymmetric)
        .with_activation_format(format)
        .with_output(output);
    // U8 is I8 and 128 more.
    let offset = if dtype(fixture, inputs.w[0]) == DType::U8 { 128 } else { 0 };
    let whole = |values: &[f64], less: i32| values.iter().map(|&q| q as i32 - less).collect::<Vec<i32>>();
    let pairs = x.values.chunks_exact(rows * k).zip(w.values.chunks_exact(k * n));
    let product = |(x, w): (&[f64], &[f64])| {
        let turned: Vec<f64> = (0..n * k).map(|place| w[place % k * n + place / k]).collect();
        let channel = |channel: usize| w_zeros[channel % w_zeros.len()];
        let zeros: Vec<f64> = (0..n).map(channel).collect();
        let mut left = integers::Integers::default();
        (left.q, left.zero_points, left.scales) =
            (whole(x, 0), whole(&x_zeros, 0), vec![x_scale; x_zeros.len()]);
        let mut right = integers::Integers::default();
        (right.q, right.zero_points, right.scales) =
            (whole(&turned, offset), whole(&zeros, offset), vec![w_scale; n]);
        Product { spec: spec.clone(), x: left, w: right, output_scale: None }
    };
    Ok(pairs.map(product).collect())
}

impl Product {
    fn oracle(&self) -> Vec<Bound> {
        let bare = self.spec.output == DType::I32;
        let products = integers::products(&self.x, &self.w, self.spec.in_features, &[], bare);
        let after = linear::After {
            out_features: self.spec.out_features,
            bias: None,
            activation: None,
            gate: None,
            soft_cap: None,
            residual: None,
            output: self.spec.output,
            output_scale: self.output_scale,
        };
        linear::epilogue(&products, &after)
    }

    fn device<B: Backend>(&self, device: &B) -> Result<Vec<f64>, Fault> {
        let (spec, stream) = (&self.spec, &mut device.stream()?);
        let k = spec.in_features;
        let rows = self.x.q.len() / k;
        let narrow = |values: &[i32]| values.iter().map(|&q| q as i8).collect::<Vec<i8>>();
        let floats = |values: &[f64]| values.iter().map(|&x| x as f32).collect::<Vec<f32>>();
        let (q, zero_points, scales) =
            (narrow(&self.w.q), narrow(&self.w.zero_points), floats(&self.w.scales));
        let weights =
            HostWeights::Int8PerChannelAsymmetric { q: &q, scales: &scales, zero_points: &zero_points };
        let packed = device.linear_pack(stream, weights.check(spec)?)?;
        let q = if spec.activations.dtype() == DType::I8 {
            Tensor::<B>::from_slice(stream, &narrow(&self.x.q), &[rows, k])?
        } else {
            let bytes: Vec<u8> = self.x.q.iter().map(|&q| q as u8).collect();
            Tensor::<B>::from_slice(stream, &bytes, &[rows, k])?
        };
        let dims = spec.activations.scale_dims(rows, k);
        let scales = Tensor::<B>::from_slice(stream, &floats(&self.x.scales), &dims)?;
        let zeros = Tensor::<B>::from_slice(stream, &self.x.zero_points, &dims)?;
        let out = Tensor::<B>::new(device, spec.output, &[rows, spec.out_features])?;
        stream.reserve(device.linear_workspace(&packed, rows))?;
        let x = Activations::Quantized(Quantized::new(&q, &scales).with_zero_points(&zeros));
        let epilogue = Epilogue { output_scale: self.output_scale, ..Epilogue::default() };
        device.linear(stream, LinearArgs::<B> { x, weights: &packed, epilogue, out: &out }.check()?)?;
        Ok(match spec.output {
            DType::I32 => out.to_vec::<i32>(stream)?.into_iter().map(f64::from).collect(),
            DType::I8 => out.to_vec::<i8>(stream)?.into_iter().map(f64::from).collect(),
            _ => out.to_vec::<u8>(stream)?.into_iter().map(f64::from).collect(),
        })
    }
}

fn published(fixture: &Fixture) -> Result<Vec<Bound>, Fault> {
    Ok(fixture.array("output.0")?.values.into_iter().map(Bound::exact).collect())
}

fn against_device<B: Backend>(device: &B, fixture: &Fixture, products: &[Product]) -> Verdict {
    let mut got = Vec::new();
    for product in products {
        got.extend(product.device(device)?);
    }
    judge(&fixture.name, &fixture.array("output.0")?.dims, &got, &published(fixture)?)
}

fn against_oracle(fixture: &Fixture, products: &[Product]) -> Verdict {
    let expected: Vec<Bound> = products.iter().flat_map(Product::oracle).collect();
    let answer = fixture.array("output.0")?;
    judge(&fixture.name, &answer.dims, &answer.values, &expected)
}

fn bare(fixture: &Fixture) -> Result<Vec<Product>, Fault> {
    let inputs =
        Inputs { x: ["input.0", "input.2"], x_scale: None, w: ["input.1", "input.3"], w_scale: None };
    products(fixture, &inputs, DType::I32)
}

pub(super) fn matmul_oracle(fixture: &Fixture) -> Verdict {
    against_oracle(fixture, &bare(fixture)?)
}

pub(super) fn matmul_device<B: Backend>(device: &B, fixture: &Fixture) -> Verdict {
    against_device(device, fixture, &bare(fixture)?)
}

fn requantized(fixture: &Fixture) -> Result<Vec<Product>, Fault> {
    let inputs = Inputs {
        x: ["input.0", "input.2"],
        x_scale: Some("input.1"),
        w: ["input.3", "input.5"],
        w_scale: Some("input.4"),
    };
    let mut products = products(fixture, &inputs, dtype(fixture, "output.0"))?;
    let scale = fixture.array("input.6")?.values[0] as f32;
    let zero_point = fixture.array("input.7")?.values[0] as i32;
    for product in &mut products {
        product.output_scale = Some(OutputScale::new(scale).with_zero_point(zero_point));
    }
    Ok(products)
}

pub(super) fn requantized_oracle(fixture: &Fixture) -> Verdict {
    against_oracle(fixture, &requantized(fixture)?)
}

pub(super) fn requantized_device<B: Backend>(device: &B, fixture: &Fixture) -> Verdict {
    against_device(device, fixture, &requantized(fixture)?)
}

/// Integers, scale and zero point; the scale may be an operation away from theirs.
fn judge_dynamic(fixture: &Fixture, q: &[f64], scale: f32, zero: i32) -> Verdict {
    judge(&fixture.name, &fixture.array("output.0")?.dims, q, &published(fixture)?)?;
    let theirs = fixture.array("output.1")?.values[0];
    let near = Bound { value: theirs, error: 4.0 * U * theirs };
    judge(&fixture.name, &[1], &[f64::from(scale)], &[near])?;
    let theirs = Bound::exact(fixture.array("output.2")?.values[0]);
    judge(&fixture.name, &[1], &[f64::from(zero)], &[theirs])
}

pub(super) fn dynamic_oracle(fixture: &Fixture) -> Verdict {
    let (q, scale, zero) = quantize::asymmetric_by_the_letter(&fixture.array("input.0")?.floats(), 0.0);
    let q: Vec<f64> = q.into_iter().map(f64::from).collect();
    judge_dynamic(fixture, &q, scale, zero)
}

pub(super) fn dynamic_device<B: Backend>(device: &B, fixture: &Fixture) -> Verdict {
    let stream = &mut device.stream()?;
    let x = fixture.array("input.0")?;
    let columns = x.dims.last().copied().unwrap_or(1);
    let dims = [x.values.len() / columns.max(1), columns];
    let spec = QuantizeSpec::new(DType::F32).with_output(ActivationFormat::AsymmetricPerTensor(DType::U8));
    let x = Tensor::<B>::from_slice(stream, &x.floats(), &dims)?;
    let q = Tensor::<B>::new(device, DType::U8, &dims)?;
    let (scale, zero) =
        (Tensor::<B>::new(device, DType::F32, &[1])?, Tensor::<B>::new(device, DType::I32, &[1])?);
    stream.reserve(device.quantize_workspace(&spec, dims[0], columns))?;
    let args = QuantizeArgs::new(&spec, &x, &q, &scale).with_zero_points(&zero);
    device.quantize(stream, args.check()?)?;
    let q: Vec<f64> = q.to_vec::<u8>(stream)?.into_iter().map(f64::from).collect();
    judge_dynamic(fixture, &q, scale.to_vec::<f32>(stream)?[0], zero.to_vec::<i32>(stream)?[0])
}
