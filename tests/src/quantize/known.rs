//! Inputs of quantisation that broke other projects, each a case by its name.

use super::{Case, Row, body, options::FORMATS};
use crate::{
    case::{Shown, Verdict, ensure},
    ledger::denied,
    poison::{Guarded, Layout},
};
use halite_kernels::{
    Backend, DType, Stream, Tensor,
    linear::ActivationFormat,
    quantize::{QuantizeArgs, QuantizeSpec},
};

pub(super) fn bodies<B: Backend>() -> Vec<Shown<B>> {
    vec![
        ("rows of zeros, of 6e-38 at most, of subnormal numbers: zeros or numbers, and a finite scale", tiny),
        ("a constant row with a zero point: exact within a step", constant),
        ("values beyond a static scale saturate, ties go to even", narrowing),
    ]
}

fn tiny<B: Backend>(device: &B) -> Verdict {
    for format in FORMATS {
        for kind in [Row::Zeros, Row::Tiny, Row::Subnormal] {
            let spec = QuantizeSpec::new(DType::F32).with_output(format);
            let rows = vec![kind; 3];
            body(device, &Case { spec, rows, columns: 70, layout: Layout::Dense, seed: 5 })?;
        }
    }
    Ok(())
}

fn constant<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    for dtype in [DType::I8, DType::U8] {
        let spec = QuantizeSpec::new(DType::F32).with_output(ActivationFormat::AsymmetricPerToken(dtype));
        if denied(device.quantize_supports(&spec)) {
            continue;
        }
        let values = [3.7f32, -0.011, 0.0, 1e-30, 3e38];
        let rows: Vec<f32> = values.iter().flat_map(|&value| [value; 19]).collect();
        let x = Tensor::<B>::from_slice(stream, &rows, &[5, 19])?;
        let q = Guarded::<B>::output(stream, dtype, &[5, 19], Layout::Dense)?;
        let scales = Guarded::<B>::output(stream, DType::F32, &[5], Layout::Dense)?;
        let zeros = Guarded::<B>::output(stream, DType::I32, &[5], Layout::Dense)?;
        let args = QuantizeArgs::new(&spec, &x, &q.view, &scales.view).with_zero_points(&zeros.view);
        stream.reserve(device.quantize_workspace(&spec, 5, 19))?;
        device.quantize(stream, args.check()?)?;
        let (q, scales, zeros) = (q.read(stream)?, scales.read(stream)?, zeros.read(stream)?);
        for (place, &q) in q.iter().enumerate() {
            let row = place / 19;
            let (value, back) = (f64::from(values[row]), (q - zeros[row]) * scales[row]);
            ensure((back - value).abs() <= 1e-6 * value.abs(), || format!("{value} came back as {back}"))?;
        }
    }
    Ok(())
}

fn narrowing<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let x = [-1e30f32, -300.0, -127.6, -0.5, 0.5, 1.5, 2.5, 126.5, 127.5, 300.0, f32::INFINITY, f32::NAN];
    for (format, zero, least, most) in [
        (ActivationFormat::Int8PerTensor, 0, -127.0, 127.0),
        (ActivationFormat::AsymmetricPerTensor(DType::I8), 7, -128.0, 127.0),
        (ActivationFormat::AsymmetricPerTensor(DType::U8), 129, 0.0, 255.0),
    ] {
        let spec = QuantizeSpec::new(DType::F32).with_output(format).with_static_scales();
        if denied(device.quantize_supports(&spec)) {
            continue;
        }
        let input = Tensor::<B>::from_slice(stream, &x, &[1, x.len()])?;
        let scale = Tensor::<B>::from_slice(stream, &[1f32], &[1])?;
        let zeros = Tensor::<B>::from_slice(stream, &[zero], &[1])?;
        let q = Guarded::<B>::output(stream, format.dtype(), &[1, x.len()], Layout::Dense)?;
        let mut args = QuantizeArgs::new(&spec, &input, &q.view, &scale);
        if format.has_zero_points() {
            args = args.with_zero_points(&zeros);
        }
        stream.reserve(device.quantize_workspace(&spec, 1, x.len()))?;
        device.quantize(stream, args.check()?)?;
        let steps = x.map(|x| if x.is_nan() { 0.0 } else { f64::from(x).round_ties_even() });
        let expected = steps.map(|steps| (steps + f64::from(zero)).clamp(least, most));
        let got = q.read(stream)?;
        ensure(got == expected, || format!("{format:?}: expected {expected:?}, got {got:?}"))?;
    }
    Ok(())
}
