//! Bad arguments of norms.

use crate::{
    case::Verdict,
    judge::refused,
    poison::{Guarded, Layout},
};
use halite_kernels::{
    Backend, DType,
    linear::ActivationFormat,
    norm::{NormArgs, NormOut, NormResidual, NormSpec},
    quantize::{QuantizeOut, QuantizeSpec},
};

pub(super) fn errors<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let mut tensor = |dtype, dims: &[usize]| Guarded::<B>::output(stream, dtype, dims, Layout::Dense);
    let (x, y, z) =
        (tensor(DType::F32, &[2, 3])?, tensor(DType::F32, &[2, 3])?, tensor(DType::F32, &[2, 3])?);
    let (weight, bias) = (tensor(DType::F32, &[3])?, tensor(DType::F32, &[3])?);
    let (half, flat, wide) =
        (tensor(DType::F16, &[2, 3])?, tensor(DType::F32, &[6])?, tensor(DType::F32, &[2, 4])?);
    let (q, scales) = (tensor(DType::I8, &[2, 3])?, tensor(DType::F32, &[2])?);
    let of_y = y.view.narrow(0, 0..1)?.reshape(&[3])?;
    let (index, value) = (tensor(DType::I32, &[1])?, tensor(DType::F32, &[2, 1])?);
    let (wide_x, wide_out) = (tensor(DType::F32, &[2, 6])?, tensor(DType::F32, &[2, 6])?);
    let (rms, layer) = (NormSpec::rms(1e-5), NormSpec::layer(1e-5));
    let negative = NormSpec::rms(-1e-5);
    let (nan, infinite) = (NormSpec::rms(f32::NAN), NormSpec::rms(f32::INFINITY));
    let float = |out| NormOut::<B>::Float(out);
    let plain = NormArgs::<B> {
        spec: &rms,
        x: &x.view,
        residual: None,
        weight: Some(&weight.view),
        bias: None,
        out: float(&y.view),
    };
    let with = |residual, sum| Some(NormResidual::Before { residual, sum });
    let after = |residual| Some(NormResidual::After { residual });
    let empty = x.view.narrow(1, 0..0)?;
    let offset = |offset| NormSpec::rms(1e-5).with_weight_offset(offset);
    // Two heads of three columns, and weights for one.
    let (heads_x, heads_out) = (wide_x.view.split_last(3)?, wide_out.view.split_last(3)?);
    let heads = NormArgs::<B> { x: &heads_x, out: float(&heads_out), ..plain.clone() };
    let heads_weight = weight.view.reshape(&[1, 3])?;
    let quantized = |spec, out| NormArgs { out: NormOut::Quantized { spec, out }, ..plain.clone() };
    let int8 = QuantizeSpec::INT8_PER_TOKEN;
    let (smoothed, outliers) = (int8.clone().with_smoothing(), int8.clone().with_outlier_columns(1));
    let usual = QuantizeOut::new(&q.view, &scales.view);
    quantized(&outliers, usual.with_outliers(&index.view, &value.view)).check()?;
    for (argument, args) in [
        ("x", NormArgs { x: &flat.view, ..plain.clone() }),
        ("x", NormArgs { x: &half.view, ..plain.clone() }),
        ("columns", NormArgs { x: &empty, ..plain.clone() }),
        ("eps", NormArgs { spec: &negative, ..plain.clone() }),
        ("eps", NormArgs { spec: &nan, ..plain.clone() }),
        ("eps", NormArgs { spec: &infinite, ..plain.clone() }),
        ("weight_offset", NormArgs { spec: &offset(f32::NAN), ..plain.clone() }),
        ("weight_offset", NormArgs { spec: &offset(f32::INFINITY), ..plain.clone() }),
        ("weight_offset", NormArgs { spec: &offset(1.0), weight: None, ..plain.clone() }),
        ("weight", NormArgs { weight: Some(&scales.view), ..plain.clone() }),
        ("weight", NormArgs { weight: Some(&z.view), ..plain.clone() }),
        ("weight", NormArgs { weight: Some(&heads_weight), ..heads.clone() }),
        ("bias", NormArgs { spec: &layer, bias: Some(&heads_weight), ..heads.clone() }),
        ("bias", NormArgs { bias: Some(&bias.view), ..plain.clone() }),
        ("bias", NormArgs { spec: &layer, bias: Some(&scales.view), ..plain.clone() }),
        ("residual", NormArgs { residual: with(&half.view, &z.view), ..plain.clone() }),
        ("sum", NormArgs { residual: with(&z.view, &wide.view), ..plain.clone() }),
        ("sum", NormArgs { residual: with(&z.view, &z.view), ..plain.clone() }),
        ("sum", NormArgs { residual: with(&z.view, &x.view), ..plain.clone() }),
        ("out", NormArgs { residual: with(&z.view, &y.view), ..plain.clone() }),
        ("residual", NormArgs { residual: after(&half.view), ..plain.clone() }),
        ("residual", NormArgs { residual: after(&wide.view), ..plain.clone() }),
        ("out", NormArgs { residual: after(&y.view), ..plain.clone() }),
        ("out", NormArgs { out: float(&x.view), ..plain.clone() }),
        ("out", NormArgs { out: float(&half.view), ..plain.clone() }),
        ("out", NormArgs { out: float(&wide.view), ..plain.clone() }),
        ("q", quantized(&int8, QuantizeOut::new(&y.view, &scales.view))),
        ("scales", quantized(&int8, QuantizeOut::new(&q.view, &weight.view))),
        ("smoothing", quantized(&int8, usual.with_smoothing(&bias.view))),
        ("smoothing", quantized(&smoothed, usual)),
        ("smoothing", quantized(&smoothed, usual.with_smoothing(&scales.view))),
        ("smoothing", quantized(&smoothed, usual.with_smoothing(&z.view))),
        ("outliers", quantized(&outliers, usual)),
        ("outliers", quantized(&outliers, usual.with_outliers(&index.view, &scales.view))),
        ("outliers", quantized(&outliers, usual.with_outliers(&index.view, &x.view.narrow(1, 0..1)?))),
        ("input", quantized(&QuantizeSpec::new(DType::F16), usual)),
        ("output", quantized(&int8.clone().with_output(ActivationFormat::Float(DType::F32)), usual)),
        // One scale of all rows is known when the last of them is.
        ("output", quantized(&int8.clone().with_output(ActivationFormat::Int8PerTensor), usual)),
        ("rotation", quantized(&int8.clone().with_hadamard(2), usual)),
        ("zero_points", quantized(&int8, usual.with_zero_points(&index.view))),
        (
            "sum",
            NormArgs {
                residual: with(&z.view, &y.view),
                ..quantized(&smoothed, usual.with_smoothing(&of_y))
            },
        ),
    ] {
        refused("norm", argument, args.check())?;
    }
    NormArgs { weight: Some(&z.view), ..heads }.check()?;
    // The residual may be what is normalised.
    NormArgs { residual: after(&x.view), ..plain }.check()?;
    y.untouched(stream)?;
    q.untouched(stream)?;
    scales.untouched(stream)
}
