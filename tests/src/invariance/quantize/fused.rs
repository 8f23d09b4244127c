//! Norms and activations that quantise in the same pass: rows alone against rows in a batch, and one call against two.

use super::super::rows::{ROWS, input, same_rows};
use super::bytes;
use crate::{
    activation::CLAMPED,
    case::{Fault, Verdict},
    judge::same_bits,
    ledger::denied,
    poison::{Layout, encode, stored},
    quantize::{fused, outputs::Outputs},
    random::Rng,
};
use halite_kernels::{
    Backend, DType, Stream, Tensor,
    activation::{Activation, ActivationArgs, ActivationOut, ActivationSpec, GateLayout, Glu},
    norm::{NormArgs, NormOut, NormResidual, NormSpec},
    quantize::{QuantizeArgs, QuantizeSpec},
};

/// What quantises.
#[derive(Clone, Debug)]
enum Operator {
    Norm(NormSpec, Side),
    Activation(ActivationSpec),
}

/// Where a norm's residual is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    None,
    Before,
    After,
}

/// An operator's input, with what else it reads.
struct Input<'a, B: Backend> {
    x: &'a Tensor<B>,
    weight: &'a Tensor<B>,
}

fn operators(dtype: DType) -> Vec<Operator> {
    let plain = ActivationSpec::new(Activation::GeluErf);
    let gated = ActivationSpec::glu(Glu::Plain(Activation::Silu), GateLayout::Split);
    let clamped = ActivationSpec::glu(CLAMPED[0], GateLayout::Interleaved);
    vec![
        Operator::Norm(NormSpec::rms(1e-5).with_dtype(dtype), Side::None),
        Operator::Norm(NormSpec::layer(1e-5).with_dtype(dtype), Side::Before),
        Operator::Norm(NormSpec::rms(1e-5).with_weight_offset(1.0).with_dtype(dtype), Side::After),
        Operator::Activation(plain.with_dtype(dtype)),
        Operator::Activation(gated.with_dtype(dtype)),
        Operator::Activation(clamped.with_dtype(dtype)),
    ]
}

/// Columns of the result for `columns` of the input.
fn result_columns(operator: &Operator, columns: usize) -> usize {
    match operator {
        Operator::Activation(spec) if spec.function != ActivationSpec::new(Activation::GeluErf).function => {
            columns / 2
        }
        _ => columns,
    }
}

/// The result as integers, in one call, into `outputs`.
fn one_call<B: Backend>(
    device: &B,
    stream: &mut B::Stream,
    operator: &Operator,
    input: &Input<'_, B>,
    quantize: &QuantizeSpec,
    outputs: &Outputs<B>,
) -> Verdict {
    let (rows, columns) = (input.x.dims()[0], result_columns(operator, input.x.dims()[1]));
    match operator {
        Operator::Norm(spec, side) => {
            stream.reserve(device.norm_quantize_workspace(spec, quantize, rows, columns))?;
            let out = NormOut::Quantized { spec: quantize, out: outputs.out() };
            norm(device, stream, spec, *side, input, out)
        }
        Operator::Activation(spec) => {
            stream.reserve(device.activation_quantize_workspace(spec, quantize, rows, columns))?;
            let out = ActivationOut::Quantized { spec: quantize, out: outputs.out() };
            Ok(device.activation(stream, ActivationArgs { spec, x: input.x, out }.check()?)?)
        }
    }
}

/// The result in F32, of the input widened to F32; then its quantisation.
fn two<B: Backend>(
    device: &B,
    stream: &mut B::Stream,
    operator: &Operator,
    input: &Input<'_, B>,
    quantize: &QuantizeSpec,
    outputs: &Outputs<B>,
) -> Verdict {
    let (rows, columns) = (input.x.dims()[0], result_columns(operator, input.x.dims()[1]));
    let y = Tensor::<B>::new(device, DType::F32, &[rows, columns])?;
    match operator {
        Operator::Norm(spec, side) => {
            let spec = spec.clone().with_dtype(DType::F32);
            norm(device, stream, &spec, *side, input, NormOut::Float(&y))?;
        }
        Operator::Activation(spec) => {
            let spec = spec.clone().with_dtype(DType::F32);
            let args = ActivationArgs { spec: &spec, x: input.x, out: ActivationOut::Float(&y) };
            device.activation(stream, args.check()?)?;
        }
    }
    stream.reserve(device.quantize_workspace(quantize, rows, columns))?;
    Ok(device.quantize(stream, QuantizeArgs::with_out(quantize, &y, outputs.out()).check()?)?)
}

fn norm<B: Backend>(
    device: &B,
    stream: &mut B::Stream,
    spec: &NormSpec,
    side: Side,
    input: &Input<'_, B>,
    out: NormOut<'_, B>,
) -> Verdict {
    let sum = Tensor::<B>::new(device, spec.dtype, input.x.dims())?;
    let residual = match side {
        Side::None => None,
        // Doubling rounds nothing, in any type.
        Side::Before => Some(NormResidual::Before { residual: input.x, sum: &sum }),
        Side::After => Some(NormResidual::After { residual: input.x }),
    };
    let args = NormArgs { spec, x: input.x, residual, weight: Some(input.weight), bias: None, out };
    Ok(device.norm(stream, args.check()?)?)
}

fn runs<B: Backend>(device: &B, operator: &Operator, quantize: &QuantizeSpec) -> bool {
    !denied(match operator {
        Operator::Norm(spec, _) => device.norm_quantize_supports(spec, quantize),
        Operator::Activation(spec) => device.activation_quantize_supports(spec, quantize),
    })
}

/// Everything that was written, one after another.
fn written<B: Backend>(
    stream: &mut B::Stream,
    outputs: &Outputs<B>,
    spec: &QuantizeSpec,
) -> Result<Vec<Vec<u8>>, Fault> {
    let out = outputs.out();
    let mut all = vec![bytes(stream, out.q)?];
    if !spec.output.is_per_tensor() {
        all.push(bytes(stream, out.scales)?);
        all.extend(out.zero_points.map(|zeros| bytes(stream, zeros)).transpose()?);
    }
    all.extend(out.outliers.map(|outliers| bytes(stream, outliers.values)).transpose()?);
    Ok(all)
}

/// A row of zeros, one with a NaN and one with an infinity among numbers.
fn values(rows: usize, columns: usize) -> Vec<f32> {
    let mut values = Rng::new(columns as u64).aways(rows * columns);
    values[..columns].fill(0.0);
    values[columns] = f32::NAN;
    values[3 * columns - 1] = f32::INFINITY;
    values
}

/// One call gives the bits of two, in every format, from every type, after every kind of operator.
pub(in super::super) fn two_calls<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let (rows, widths, dtypes) = (5, [2, 34, 96, 288], [DType::F32, DType::F16, DType::Bf16]);
    for number in 0..operators(DType::F32).len() {
        // Every operator with every format, the sizes and types in turn.
        for place in 0..fused(1).len() {
            let (width, dtype) = (widths[(number + place) % 4], dtypes[(place + place / 6) % 3]);
            let operator = operators(dtype).swap_remove(number);
            let columns = result_columns(&operator, width);
            let quantize = fused(columns).swap_remove(place);
            if !runs(device, &operator, &quantize) || denied(device.quantize_supports(&quantize)) {
                continue;
            }
            let values = Tensor::<B>::from_slice(stream, &values(rows, width), &[rows, width])?;
            let (x, wide) = rounded::<B>(stream, &values, dtype)?;
            let weight = Tensor::<B>::from_slice(stream, &Rng::new(1).aways(width), &[width])?;
            let mut made = Vec::new();
            for one in [true, false] {
                let mut rng = Rng::new(3);
                let dims = [rows, columns];
                let outputs = Outputs::<B>::new(stream, &mut rng, &quantize, &dims, Layout::Dense)?;
                let input = Input { x: if one { &x } else { &wide }, weight: &weight };
                let run = if one { one_call } else { two };
                run(device, stream, &operator, &input, &quantize, &outputs)?;
                made.push(written(stream, &outputs, &quantize)?.concat());
            }
            let what = format!("{operator:?}, {quantize:?}, {columns} columns: one call and two");
            same_bits(&what, &made[0], &made[1])?;
        }
    }
    Ok(())
}

/// The values of an F32 tensor in a type, and those in F32 again.
fn rounded<B: Backend>(
    stream: &mut B::Stream,
    x: &Tensor<B>,
    dtype: DType,
) -> Result<(Tensor<B>, Tensor<B>), Fault> {
    let values: Vec<f32> = x.to_vec(stream)?;
    let (rounded, dims) = (Tensor::<B>::new(stream.device(), dtype, x.dims())?, x.dims());
    let encoded: Vec<u8> = values.iter().flat_map(|&value| encode(dtype, value)).collect();
    stream.upload(&rounded, &encoded)?;
    let wide: Vec<f32> = values.iter().map(|&value| stored(dtype, value) as f32).collect();
    Ok((rounded, Tensor::from_slice(stream, &wide, dims)?))
}

/// A row has the same bits alone and in every batch.
pub(super) fn rows<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let width = 96;
    let x = input::<B>(stream, width)?;
    let weight = Tensor::<B>::from_slice(stream, &Rng::new(1).aways(width), &[width])?;
    for (number, operator) in operators(DType::F32).into_iter().enumerate() {
        let columns = result_columns(&operator, width);
        for quantize in fused(columns).into_iter().skip(2 * number).step_by(11) {
            if !runs(device, &operator, &quantize) {
                continue;
            }
            let mut run = |rows: std::ops::Range<usize>| -> Result<Vec<u8>, Fault> {
                let (x, count) = (x.narrow(0, rows.clone())?, rows.len());
                let mut rng = Rng::new(3);
                let dims = [count, columns];
                let outputs = Outputs::<B>::new(stream, &mut rng, &quantize, &dims, Layout::Dense)?;
                let input = Input { x: &x, weight: &weight };
                one_call(device, stream, &operator, &input, &quantize, &outputs)?;
                // Row by row, so that rows of a batch can be held against rows alone.
                let all = written(stream, &outputs, &quantize)?;
                let row = |row: usize| {
                    all.iter().flat_map(move |part| {
                        let size = part.len() / count;
                        part[row * size..(row + 1) * size].to_vec()
                    })
                };
                Ok((0..count).flat_map(row).collect())
            };
            let size = run(0..ROWS)?.len() / ROWS;
            same_rows(&format!("{operator:?}, {quantize:?}"), size, run)?;
        }
    }
    Ok(())
}
