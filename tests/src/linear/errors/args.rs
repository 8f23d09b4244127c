//! Bad arguments of a call.

use crate::{
    case::Verdict,
    judge::{refused, unsupported},
    ledger::denied,
    poison::{Guarded, Layout},
};
use halite_kernels::{
    Backend, DType,
    activation::Activation,
    linear::{
        ActivationFormat, Activations, Epilogue, HostWeights, LinearArgs, LinearSpec, OutputScale, Quantized,
        WeightFormat,
    },
};

pub(super) fn floats<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let spec = LinearSpec::float(3, 4, WeightFormat::F32);
    let packed = device.linear_pack(stream, HostWeights::F32(&[1.0; 12]).check(&spec)?)?;
    let gated_spec = LinearSpec::float(3, 4, WeightFormat::F32).gated(Activation::Silu);
    let gated = device.linear_pack(stream, HostWeights::F32(&[1.0; 24]).check(&gated_spec)?)?;
    let mut tensor = |dtype, dims: &[usize]| Guarded::<B>::output(stream, dtype, dims, Layout::Dense);
    let (x, wide, half, q) = (
        tensor(DType::F32, &[2, 3])?,
        tensor(DType::F32, &[2, 5])?,
        tensor(DType::F16, &[2, 3])?,
        tensor(DType::I8, &[2, 3])?,
    );
    let (out, flat, half_out) =
        (tensor(DType::F32, &[2, 4])?, tensor(DType::F32, &[8])?, tensor(DType::F16, &[2, 4])?);
    let (bias, scales) = (tensor(DType::F32, &[4])?, tensor(DType::F32, &[2])?);
    let args = |x, out| LinearArgs::<B> { x, weights: &packed, epilogue: Epilogue::default(), out };
    let float = || Activations::Float(&x.view);
    let epilogue = |bias, residual| Epilogue::<B> { bias, residual, ..Epilogue::default() };
    let plain = || args(float(), &out.view);
    let activated = Epilogue { activation: Some(Activation::Silu), ..Epilogue::default() };
    let capped =
        |cap| LinearArgs { epilogue: Epilogue { soft_cap: Some(cap), ..Epilogue::default() }, ..plain() };
    for (argument, args) in [
        ("x", args(Activations::Float(&wide.view), &out.view)),
        ("x", args(Activations::Float(&half.view), &out.view)),
        ("x", args(Activations::Float(&x.view.narrow(0, 0..1)?), &out.view)),
        ("x", args(Activations::int8_per_token(&q.view, &scales.view), &out.view)),
        ("out", args(float(), &flat.view)),
        ("out", args(float(), &wide.view)),
        ("out", args(float(), &half_out.view)),
        ("out", args(Activations::Float(&wide.view.narrow(1, 0..3)?), &wide.view.narrow(1, 1..5)?)),
        ("bias", LinearArgs { epilogue: epilogue(Some(&scales.view), None), ..plain() }),
        ("bias", LinearArgs { weights: &gated, epilogue: epilogue(Some(&bias.view), None), ..plain() }),
        ("residual", LinearArgs { epilogue: epilogue(None, Some(&half_out.view)), ..plain() }),
        ("residual", LinearArgs { epilogue: epilogue(None, Some(&x.view)), ..plain() }),
        ("out", LinearArgs { epilogue: epilogue(None, Some(&out.view)), ..plain() }),
        ("activation", LinearArgs { weights: &gated, epilogue: activated, ..plain() }),
        ("soft_cap", capped(0.0)),
        ("soft_cap", capped(-30.0)),
        ("soft_cap", capped(f32::NAN)),
        ("soft_cap", capped(f32::INFINITY)),
    ] {
        refused("linear", argument, args.check())?;
    }
    wide.untouched(stream)?;
    out.untouched(stream)
}

pub(super) fn int8<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let bare_spec = LinearSpec::w8a8(3, 4).with_output(DType::I32);
    let weights = HostWeights::Int8PerChannel { q: &[1; 12], scales: &[1.0; 4] };
    let bare = device.linear_pack(stream, weights.check(&bare_spec)?)?;
    let mut tensor = |dtype, dims: &[usize]| Guarded::<B>::output(stream, dtype, dims, Layout::Dense);
    let (q, x, scales, few) = (
        tensor(DType::I8, &[2, 3])?,
        tensor(DType::F32, &[2, 3])?,
        tensor(DType::F32, &[2])?,
        tensor(DType::F32, &[1])?,
    );
    let (out, float_out, bias) =
        (tensor(DType::I32, &[2, 4])?, tensor(DType::F32, &[2, 4])?, tensor(DType::F32, &[4])?);
    let int8 = |q, scales| Activations::int8_per_token(q, scales);
    let plain = || LinearArgs::<B> {
        x: int8(&q.view, &scales.view),
        weights: &bare,
        epilogue: Epilogue::default(),
        out: &out.view,
    };
    let biased = Epilogue { bias: Some(&bias.view), ..Epilogue::default() };
    let capped = Epilogue { soft_cap: Some(30.0), ..Epilogue::default() };
    for (argument, args) in [
        ("x", LinearArgs { x: Activations::Float(&x.view), ..plain() }),
        ("q", LinearArgs { x: int8(&x.view, &scales.view), ..plain() }),
        ("scales", LinearArgs { x: int8(&q.view, &few.view), ..plain() }),
        ("out", LinearArgs { out: &float_out.view, ..plain() }),
        ("epilogue", LinearArgs { epilogue: biased, ..plain() }),
        ("epilogue", LinearArgs { epilogue: capped, ..plain() }),
    ] {
        refused("linear", argument, args.check())?;
    }
    out.untouched(stream)
}

pub(super) fn quantized<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let spec = LinearSpec::w8a8(40, 4)
        .with_activation_format(ActivationFormat::AsymmetricPerToken(DType::U8))
        .with_outliers(2, DType::Bf16);
    let plain = HostWeights::Int8PerChannel { q: &[1; 160], scales: &[1.0; 4] };
    let weights = HostWeights::WithOutliers { weights: &plain, columns: &[3, 39], values: &[0.0; 8] };
    if denied(device.linear_supports(&spec)) {
        return unsupported("linear", device.linear_pack(stream, weights.check(&spec)?));
    }
    let packed = device.linear_pack(stream, weights.check(&spec)?)?;
    let groups =
        LinearSpec::w8a8(40, 4).with_activation_format(ActivationFormat::Int8PerGroup { group_size: 32 });
    if denied(device.linear_supports(&groups)) {
        return unsupported("linear", device.linear_pack(stream, plain.check(&groups)?));
    }
    let grouped = device.linear_pack(stream, plain.check(&groups)?)?;
    let mut tensor = |dtype, dims: &[usize]| Guarded::<B>::output(stream, dtype, dims, Layout::Dense);
    let (q, signed) = (tensor(DType::U8, &[2, 40])?, tensor(DType::I8, &[2, 40])?);
    let (scales, zeros, one) =
        (tensor(DType::F32, &[2])?, tensor(DType::I32, &[2])?, tensor(DType::I32, &[1])?);
    let (outliers, three) = (tensor(DType::Bf16, &[2, 2])?, tensor(DType::Bf16, &[2, 3])?);
    let (group_scales, out) = (tensor(DType::F32, &[2, 2])?, tensor(DType::F32, &[2, 4])?);
    let args = |packed, x| LinearArgs::<B> {
        x: Activations::Quantized(x),
        weights: packed,
        epilogue: Epilogue::default(),
        out: &out.view,
    };
    let of_q =
        |q, scales| Quantized::new(q, scales).with_zero_points(&zeros.view).with_outliers(&outliers.view);
    let right = of_q(&q.view, &scales.view);
    let bare = |q, scales| Quantized::new(q, scales);
    args(&packed, right).check()?;
    args(&grouped, bare(&signed.view, &group_scales.view)).check()?;
    for (argument, args) in [
        ("q", args(&packed, of_q(&signed.view, &scales.view))),
        ("scales", args(&packed, of_q(&q.view, &group_scales.view))),
        ("zero_points", args(&packed, right.with_zero_points(&one.view))),
        ("zero_points", args(&packed, right.with_zero_points(&scales.view))),
        ("zero_points", args(&packed, bare(&q.view, &scales.view).with_outliers(&outliers.view))),
        ("outliers", args(&packed, bare(&q.view, &scales.view).with_zero_points(&zeros.view))),
        ("outliers", args(&packed, right.with_outliers(&three.view))),
        ("outliers", args(&packed, right.with_outliers(&group_scales.view))),
        ("scales", args(&grouped, bare(&signed.view, &scales.view))),
        ("zero_points", args(&grouped, bare(&signed.view, &group_scales.view).with_zero_points(&zeros.view))),
        ("outliers", args(&grouped, bare(&signed.view, &group_scales.view).with_outliers(&outliers.view))),
    ] {
        refused("linear", argument, args.check())?;
    }
    out.untouched(stream)
}

pub(super) fn output_scales<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let of = |output| LinearSpec::float(3, 4, WeightFormat::F32).with_output(output);
    let (mut pack, weights) = (Vec::new(), HostWeights::F32(&[1.0; 12]));
    for spec in [of(DType::I8), of(DType::U8), of(DType::F32)] {
        if denied(device.linear_supports(&spec)) {
            return unsupported("linear", device.linear_pack(stream, weights.check(&spec)?));
        }
        pack.push(device.linear_pack(stream, weights.check(&spec)?)?);
    }
    let mut tensor = |dtype, dims: &[usize]| Guarded::<B>::output(stream, dtype, dims, Layout::Dense);
    let x = tensor(DType::F32, &[2, 3])?;
    let out = [tensor(DType::I8, &[2, 4])?, tensor(DType::U8, &[2, 4])?, tensor(DType::F32, &[2, 4])?];
    let residual = tensor(DType::I8, &[2, 4])?;
    let right = OutputScale::new(0.5);
    let (none, scaled) =
        (Epilogue::default(), |scale| Epilogue { output_scale: Some(scale), ..Epilogue::default() });
    for (argument, which, epilogue) in [
        ("output_scale", 0, none.clone()),
        ("output_scale", 1, none),
        ("output_scale", 2, scaled(right)),
        ("output_scale", 0, scaled(OutputScale::new(0.0))),
        ("output_scale", 0, scaled(OutputScale::new(-1.0))),
        ("output_scale", 0, scaled(OutputScale::new(f32::NAN))),
        ("output_scale", 0, scaled(OutputScale::new(f32::INFINITY))),
        ("output_scale", 0, scaled(OutputScale::new(1e-40))),
        ("output_scale", 0, scaled(right.with_zero_point(128))),
        ("output_scale", 1, scaled(right.with_zero_point(-1))),
        ("residual", 0, Epilogue { residual: Some(&residual.view), ..scaled(right) }),
    ] {
        let x = Activations::Float(&x.view);
        let args = LinearArgs::<B> { x, weights: &pack[which], epilogue, out: &out[which].view };
        refused("linear", argument, args.check())?;
    }
    Ok(())
}
