//! Bad arguments of quantisation.

use crate::{
    case::{Shown, Verdict, ensure},
    judge::refused,
    poison::{Guarded, Layout},
};
use halite_kernels::{
    Backend, DType,
    linear::ActivationFormat,
    quantize::{MAX_ROTATION_BLOCK, QuantizeArgs, QuantizeSpec},
};

pub(super) fn bodies<B: Backend>() -> Vec<Shown<B>> {
    vec![
        ("wrong shapes, types and overlaps", shapes),
        ("specifications that make no sense", specs),
        ("what formats and options need, and what they do not", options),
        super::rotate::errors(),
    ]
}

fn shapes<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let spec = QuantizeSpec::new(DType::F32);
    let x = Guarded::<B>::output(stream, DType::F32, &[2, 3], Layout::Dense)?;
    let q = Guarded::<B>::output(stream, DType::I8, &[2, 3], Layout::Dense)?;
    let narrow = Guarded::<B>::output(stream, DType::I8, &[2, 2], Layout::Dense)?;
    let scales = Guarded::<B>::output(stream, DType::F32, &[2], Layout::Dense)?;
    let long = Guarded::<B>::output(stream, DType::F32, &[3], Layout::Dense)?;
    let inside_x = x.view.narrow(1, 0..1)?.reshape(&[2]);
    for (argument, x, q, scales) in [
        ("x", &q.view, &q.view, &scales.view),
        ("x", &scales.view, &q.view, &scales.view),
        ("q", &x.view, &x.view, &scales.view),
        ("q", &x.view, &narrow.view, &scales.view),
        ("scales", &x.view, &q.view, &long.view),
        ("scales", &x.view, &q.view, &q.view),
        ("scales", &x.view, &q.view, &x.view.narrow(0, 0..1)?.narrow(1, 0..2)?.reshape(&[2])?),
    ] {
        refused("quantize", argument, QuantizeArgs::new(&spec, x, q, scales).check())?;
    }
    ensure(inside_x.is_err(), || "a strided column was reshaped as if it were dense".into())?;
    q.untouched(stream)?;
    scales.untouched(stream)
}

fn specs<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let x = Guarded::<B>::output(stream, DType::F32, &[2, 48], Layout::Dense)?;
    let q = Guarded::<B>::output(stream, DType::I8, &[2, 48], Layout::Dense)?;
    let scales = Guarded::<B>::output(stream, DType::F32, &[2], Layout::Dense)?;
    let plain = QuantizeSpec::new(DType::F32);
    for (argument, spec) in [
        ("output", plain.clone().with_output(ActivationFormat::Float(DType::F32))),
        ("output", plain.clone().with_output(ActivationFormat::Int8PerGroup { group_size: 0 })),
        ("output", plain.clone().with_output(ActivationFormat::Int8PerGroup { group_size: 40 })),
        ("output", plain.clone().with_output(ActivationFormat::AsymmetricPerToken(DType::I32))),
        ("output", plain.clone().with_static_scales()),
        ("rotation", plain.clone().with_hadamard(0)),
        ("rotation", plain.clone().with_hadamard(3)),
        ("rotation", plain.clone().with_hadamard(2 * MAX_ROTATION_BLOCK)),
        ("rotation", plain.clone().with_hadamard(32)),
        ("outliers", plain.clone().with_hadamard(16).with_outlier_columns(1)),
    ] {
        let args = QuantizeArgs::new(&spec, &x.view, &q.view, &scales.view);
        refused("quantize", argument, args.check())?;
    }
    q.untouched(stream)
}

fn options<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let mut tensor = |dtype, dims: &[usize]| Guarded::<B>::output(stream, dtype, dims, Layout::Dense);
    let (x, q, unsigned) =
        (tensor(DType::F32, &[2, 48])?, tensor(DType::I8, &[2, 48])?, tensor(DType::U8, &[2, 48])?);
    let (scales, one, groups) =
        (tensor(DType::F32, &[2])?, tensor(DType::F32, &[1])?, tensor(DType::F32, &[2, 2])?);
    let (zeros, factors) = (tensor(DType::I32, &[2])?, tensor(DType::F32, &[48])?);
    let (columns, values) = (tensor(DType::I32, &[3])?, tensor(DType::F32, &[2, 3])?);
    let plain = QuantizeSpec::new(DType::F32);
    let grouped = plain.clone().with_output(ActivationFormat::Int8PerGroup { group_size: 32 });
    let tensor_wide = plain.clone().with_output(ActivationFormat::Int8PerTensor);
    let asymmetric = plain.clone().with_output(ActivationFormat::AsymmetricPerToken(DType::U8));
    let smoothed = plain.clone().with_smoothing();
    let outliers = plain.clone().with_outlier_columns(3);
    let too_many = plain.clone().with_outlier_columns(49);
    let args = |spec, q, scales| QuantizeArgs::new(spec, &x.view, q, scales);
    let usual = |spec| args(spec, &q.view, &scales.view);
    let of_u8 = || args(&asymmetric, &unsigned.view, &scales.view);
    for right in [
        args(&grouped, &q.view, &groups.view),
        args(&tensor_wide, &q.view, &one.view),
        of_u8().with_zero_points(&zeros.view),
        usual(&smoothed).with_smoothing(&factors.view),
        usual(&outliers).with_outliers(&columns.view, &values.view),
    ] {
        right.check()?;
    }
    for (argument, args) in [
        ("scales", usual(&grouped)),
        ("scales", usual(&tensor_wide)),
        ("q", args(&asymmetric, &q.view, &scales.view).with_zero_points(&zeros.view)),
        ("zero_points", of_u8()),
        ("zero_points", of_u8().with_zero_points(&scales.view)),
        ("zero_points", of_u8().with_zero_points(&columns.view)),
        ("zero_points", usual(&plain).with_zero_points(&zeros.view)),
        ("smoothing", usual(&smoothed)),
        ("smoothing", usual(&smoothed).with_smoothing(&scales.view)),
        ("smoothing", usual(&plain).with_smoothing(&factors.view)),
        ("outliers", usual(&outliers)),
        ("outliers", usual(&plain).with_outliers(&columns.view, &values.view)),
        ("outliers", usual(&outliers).with_outliers(&zeros.view, &values.view)),
        ("outliers", usual(&outliers).with_outliers(&columns.view, &groups.view)),
        ("outliers", usual(&outliers).with_outliers(&columns.view, &x.view.narrow(1, 0..3)?)),
        ("outliers", usual(&too_many).with_outliers(&columns.view, &values.view)),
    ] {
        refused("quantize", argument, args.check())?;
    }
    q.untouched(stream)
}
