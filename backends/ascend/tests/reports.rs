//! What others reported of CANN, as inputs: each test names the report.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

mod standin;

use halite_ascend::Ascend;
use halite_hal::{DType, Device, Pending, Result, Stream, Tensor};
use halite_kernels::{
    linear::{Activations, Epilogue, HostWeights, Linear, LinearArgs, LinearSpec, WeightFormat},
    quantize::{Quantize, QuantizeArgs, QuantizeSpec},
};

type Queue = <Ascend as Device>::Stream;

/// Rows in INT8 per token.
fn quantized(
    device: &Ascend,
    stream: &mut Queue,
    x: &Tensor<Ascend>,
) -> Result<(Tensor<Ascend>, Tensor<Ascend>)> {
    let spec = QuantizeSpec::new(x.dtype());
    let q = Tensor::new(device, DType::I8, x.dims())?;
    let scales = Tensor::new(device, DType::F32, &x.dims()[..1])?;
    stream.reserve(device.quantize_workspace(&spec, x.dims()[0], x.dims()[1]))?;
    device.quantize(stream, QuantizeArgs::new(&spec, x, &q, &scales).check()?)?;
    Ok((q, scales))
}

/// A layer of weights of 1 and scales of 0.5, to F32.
fn ones(
    device: &Ascend,
    stream: &mut Queue,
    x: Activations<'_, Ascend>,
    dims: [usize; 3],
) -> Result<Vec<f32>> {
    let [rows, k, n] = dims;
    let spec = LinearSpec::w8a8(k, n);
    let weights = HostWeights::Int8PerChannel { q: &vec![1; k * n], scales: &vec![0.5; n] };
    let weights = device.linear_pack(stream, weights.check(&spec)?)?;
    let out = Tensor::new(device, DType::F32, &[rows, n])?;
    stream.reserve(device.linear_workspace(&weights, rows))?;
    let args = LinearArgs { x, weights: &weights, epilogue: Epilogue::default(), out: &out };
    device.linear(stream, args.check()?)?;
    out.to_vec(stream)
}

/// vllm-project/afd-plugin 210: no rows at all reach CANN, which refuses them or crashes.
#[test]
fn no_rows_are_no_call() -> Result<()> {
    let device = standin::device()?;
    let mut stream = device.stream()?;
    let x = Tensor::new(&device, DType::Bf16, &[0, 8])?;
    let before = stream.launches();
    let (q, scales) = quantized(&device, &mut stream, &x)?;
    assert_eq!(ones(&device, &mut stream, Activations::int8_per_token(&q, &scales), [0, 8, 3])?, []);
    assert_eq!(stream.launches(), before);
    Ok(())
}

/// vllm-ascend 9687 and mllm 671: padding of zeros, and of what nobody has written, beside real rows.
#[test]
fn padding_rows_stay_to_themselves() -> Result<()> {
    let device = standin::device()?;
    let mut stream = device.stream()?;
    let rows =
        [[1f32, -2.0, 3.0, 127.0], [0.0; 4], [f32::NAN, 1.0, 2.0, 3.0], [0.0, f32::INFINITY, 0.0, 1.0]];
    let x = Tensor::from_slice(&mut stream, rows.as_flattened(), &[4, 4])?;
    let (q, scales) = quantized(&device, &mut stream, &x)?;
    let got = scales.to_vec::<f32>(&mut stream)?;
    assert_eq!(got[..2], [1.0, f32::MIN_POSITIVE]);
    assert!(got[2].is_nan() && got[3].is_nan(), "{got:?}");
    let bytes = q.to_vec::<i8>(&mut stream)?;
    assert_eq!(bytes, [1, -2, 3, 127, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let y = ones(&device, &mut stream, Activations::int8_per_token(&q, &scales), [4, 4, 2])?;
    assert_eq!(y[..4], [64.5, 64.5, 0.0, 0.0]);
    assert!(y[4..].iter().all(|y| y.is_nan()), "it stays visible: {y:?}");
    Ok(())
}

/// vllm-ascend cuts such weights in two (`w8a8_dynamic.py`): a last dimension beyond 65,535 is not for every form of a product.
#[test]
fn layers_as_wide_as_a_vocabulary() -> Result<()> {
    let device = standin::device()?;
    let mut stream = device.stream()?;
    let (q, scales) = (
        Tensor::from_slice(&mut stream, &[3i8, -1], &[1, 2])?,
        Tensor::from_slice(&mut stream, &[2f32], &[1])?,
    );
    for n in [65_535, 65_536, 65_537] {
        for output in [DType::I32, DType::F32, DType::Bf16] {
            let spec = LinearSpec::w8a8(2, n).with_output(output);
            let weights: Vec<i8> = (0..2 * n).map(|at| (at % 13) as i8).collect();
            let host = HostWeights::Int8PerChannel { q: &weights, scales: &vec![0.5; n] };
            let packed = device.linear_pack(&mut stream, host.check(&spec)?)?;
            let out = Tensor::new(&device, output, &[1, n])?;
            stream.reserve(device.linear_workspace(&packed, 1))?;
            let x = Activations::int8_per_token(&q, &scales);
            let args = LinearArgs { x, weights: &packed, epilogue: Epilogue::default(), out: &out };
            device.linear(&mut stream, args.check()?)?;
            let sum = |at: usize| 3 * i32::from(weights[2 * at]) - i32::from(weights[2 * at + 1]);
            let last = out.narrow(1, n - 1..n)?;
            let got = match output {
                DType::I32 => last.to_vec::<i32>(&mut stream)?[0] as f32,
                DType::F32 => last.to_vec::<f32>(&mut stream)?[0],
                _ => f32::from_bits(u32::from_le_bytes(
                    [&[0, 0], &*stream.download(&last)?.wait()?].concat().try_into().unwrap(),
                )),
            };
            // Rows and columns together scale by 1.
            assert_eq!(got, sum(n - 1) as f32, "{n} {output}");
        }
    }
    Ok(())
}

/// sglang PR 21209: 360 columns, which no format of blocks divides: weights stay in plain rows.
#[test]
fn widths_that_no_block_divides() -> Result<()> {
    let device = standin::device()?;
    let mut stream = device.stream()?;
    let x = Tensor::from_slice(&mut stream, &[1f32; 360], &[1, 360])?;
    let (q, scales) = quantized(&device, &mut stream, &x)?;
    let y = ones(&device, &mut stream, Activations::int8_per_token(&q, &scales), [1, 360, 9])?;
    assert!(y.iter().all(|y| (y - 180.0).abs() < 1e-3), "{y:?}");
    let spec = LinearSpec::float(360, 9, WeightFormat::F32);
    let weights = device.linear_pack(&mut stream, HostWeights::F32(&[0.5; 3240]).check(&spec)?)?;
    let out = Tensor::new(&device, DType::F32, &[1, 9])?;
    stream.reserve(device.linear_workspace(&weights, 1))?;
    let args =
        LinearArgs { x: Activations::Float(&x), weights: &weights, epilogue: Epilogue::default(), out: &out };
    device.linear(&mut stream, args.check()?)?;
    assert_eq!(out.to_vec::<f32>(&mut stream)?, [180.0; 9]);
    Ok(())
}
