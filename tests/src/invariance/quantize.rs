//! Quantised rows alone against rows in a batch, and the documented formula to the bit.

mod fused;

pub(super) use fused::two_calls;

use super::rows::{ROWS, input, same_rows};
use crate::{
    case::{Fault, Shown, Verdict, ensure},
    ledger::denied,
    oracle,
    poison::{Guarded, Layout},
    quantize::Row,
    random::Rng,
};
use halite_kernels::{
    Backend, DType, Stream, Tensor,
    linear::ActivationFormat,
    quantize::{QuantizeArgs, QuantizeSpec, RotateArgs, RotateSpec, ScaleSource, Smoothing},
};
use std::ops::Range;

pub(super) fn bodies<B: Backend>() -> Vec<Shown<B>> {
    vec![
        ("quantised rows in every format that has a scale of its own a row", quantize),
        ("rows that a norm or an activation quantises", fused::rows),
        ("rotated rows", rotate),
    ]
}

/// One scale for all rows is left out where it is dynamic: it is what depends on them.
fn specs() -> Vec<QuantizeSpec> {
    let plain = QuantizeSpec::new(DType::F32);
    let formats = [
        ActivationFormat::Int8PerToken,
        ActivationFormat::Int8PerGroup { group_size: 32 },
        ActivationFormat::AsymmetricPerToken(DType::U8),
    ];
    let mut specs = Vec::new();
    for format in formats {
        let spec = plain.clone().with_output(format);
        specs.extend([
            spec.clone(),
            spec.clone().with_smoothing().with_hadamard(4),
            spec.with_smoothing().with_outlier_columns(5),
        ]);
    }
    let given = ActivationFormat::AsymmetricPerTensor(DType::I8);
    specs.push(plain.with_output(given).with_static_scales());
    specs
}

/// Quantises rows of `x`: integers, scales, zero points and outliers, each one after another.
fn run<B: Backend>(
    device: &B,
    stream: &mut B::Stream,
    spec: &QuantizeSpec,
    x: &Tensor<B>,
    rows: Range<usize>,
) -> Result<Vec<Vec<u8>>, Fault> {
    let (x, count, columns) = (x.narrow(0, rows.clone())?, rows.len(), x.dims()[1]);
    let q = Tensor::<B>::new(device, spec.output.dtype(), &[count, columns])?;
    let dims = spec.output.scale_dims(count, columns);
    let elements = dims.iter().product();
    let scales = Tensor::<B>::from_slice(stream, &vec![0.07f32; elements], &dims)?;
    let zeros = Tensor::<B>::from_slice(stream, &vec![9i32; elements], &dims)?;
    let factors: Vec<f32> = (0..columns).map(|column| 1.0 + (column % 7) as f32 / 3.0).collect();
    let factors = Tensor::<B>::from_slice(stream, &factors, &[columns])?;
    let outliers: Vec<i32> = (0..spec.outlier_columns as i32).map(|place| 3 * place).collect();
    let outliers = Tensor::<B>::from_slice(stream, &outliers, &[spec.outlier_columns])?;
    let values = Tensor::<B>::from_slice(
        stream,
        &vec![0f32; count * spec.outlier_columns],
        &[count, spec.outlier_columns],
    )?;
    let mut args = QuantizeArgs::new(spec, &x, &q, &scales);
    if spec.output.has_zero_points() {
        args = args.with_zero_points(&zeros);
    }
    if spec.smoothing == Smoothing::PerColumn {
        args = args.with_smoothing(&factors);
    }
    if spec.outlier_columns > 0 {
        args = args.with_outliers(&outliers, &values);
    }
    stream.reserve(device.quantize_workspace(spec, count, columns))?;
    device.quantize(stream, args.check()?)?;
    let mut all = vec![bytes(stream, &q)?];
    if spec.scales == ScaleSource::Dynamic {
        all.extend([bytes(stream, &scales)?, bytes(stream, &zeros)?]);
    }
    all.push(bytes(stream, &values)?);
    Ok(all)
}

fn bytes<B: Backend>(stream: &mut B::Stream, tensor: &Tensor<B>) -> Result<Vec<u8>, Fault> {
    use halite_hal::Pending;
    Ok(stream.download(tensor)?.wait()?)
}

fn quantize<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    for spec in specs() {
        if denied(device.quantize_supports(&spec)) {
            continue;
        }
        for columns in [20, 100, 576] {
            let x = input::<B>(stream, columns)?;
            let parts = run(device, stream, &spec, &x, 0..ROWS)?.len();
            for part in 0..parts {
                let row_bytes = run(device, stream, &spec, &x, 0..1)?[part].len();
                same_rows(&format!("{spec:?}, part {part}"), row_bytes, |rows| {
                    Ok(run(device, stream, &spec, &x, rows)?.swap_remove(part))
                })?;
            }
        }
    }
    Ok(())
}

fn rotate<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    for (columns, block) in [(20, 4), (96, 32), (256, 256)] {
        let spec = RotateSpec::hadamard(block);
        if denied(device.rotate_supports(&spec)) {
            continue;
        }
        let x = input::<B>(stream, columns)?;
        same_rows(&format!("{spec:?}"), columns * 4, |rows| {
            let (x, count) = (x.narrow(0, rows.clone())?, rows.len());
            let out = Tensor::<B>::new(device, DType::F32, &[count, columns])?;
            device.rotate(stream, RotateArgs { spec: &spec, x: &x, out: &out }.check()?)?;
            bytes(stream, &out)
        })?;
    }
    Ok(())
}

/// A backend with IEEE division follows the documented F32 formula to the bit, on every kind of row.
pub(super) fn letter<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let kinds = [
        Row::Spread,
        Row::Zeros,
        Row::Tiny,
        Row::Subnormal,
        Row::Huge,
        Row::Constant,
        Row::Ties,
        Row::Nan,
        Row::Infinite,
    ];
    for columns in [1, 16, 33, 576] {
        let mut rng = Rng::new(columns as u64);
        let rows: Vec<Vec<f32>> =
            kinds.map(|kind| crate::quantize::row(&mut rng, kind, DType::F32, columns)).to_vec();
        let dims = [rows.len(), columns];
        let x = Tensor::<B>::from_slice(stream, &rows.concat(), &dims)?;
        let q = Guarded::<B>::output(stream, DType::I8, &dims, Layout::Dense)?;
        let scales = Guarded::<B>::output(stream, DType::F32, &dims[..1], Layout::Dense)?;
        let spec = QuantizeSpec::new(DType::F32);
        let args = QuantizeArgs::new(&spec, &x, &q.view, &scales.view);
        device.quantize(stream, args.check()?)?;
        let (q, scales) = (q.view.to_vec::<i8>(stream)?, scales.view.to_vec::<f32>(stream)?);
        for (row, values) in rows.iter().enumerate() {
            let (expected, scale) = oracle::quantize::by_the_letter(values);
            let same = scales[row].to_bits() == scale.to_bits() || (scale.is_nan() && scales[row].is_nan());
            ensure(same && q[row * columns..][..columns] == expected[..], || {
                format!("a row of {:?}, {columns} columns: scale {} for {scale}", kinds[row], scales[row])
            })?;
        }
    }
    Ok(())
}

/// As [`letter`], with zero points.
pub(super) fn asymmetric_letter<B: Backend>(device: &B) -> Verdict {
    let stream = &mut device.stream()?;
    let kinds = [Row::Spread, Row::Zeros, Row::Tiny, Row::Subnormal, Row::Huge, Row::Constant, Row::Ties];
    for dtype in [DType::I8, DType::U8] {
        let spec = QuantizeSpec::new(DType::F32).with_output(ActivationFormat::AsymmetricPerToken(dtype));
        if denied(device.quantize_supports(&spec)) {
            continue;
        }
        for columns in [1, 16, 33, 576] {
            let mut rng = Rng::new(columns as u64);
            let rows = kinds.map(|kind| crate::quantize::row(&mut rng, kind, DType::F32, columns));
            let dims = [rows.len(), columns];
            let x = Tensor::<B>::from_slice(stream, &rows.concat(), &dims)?;
            let q = Guarded::<B>::output(stream, dtype, &dims, Layout::Dense)?;
            let scales = Guarded::<B>::output(stream, DType::F32, &dims[..1], Layout::Dense)?;
            let zeros = Guarded::<B>::output(stream, DType::I32, &dims[..1], Layout::Dense)?;
            let args = QuantizeArgs::new(&spec, &x, &q.view, &scales.view).with_zero_points(&zeros.view);
            device.quantize(stream, args.check()?)?;
            let (q, scales) = (q.read(stream)?, scales.view.to_vec::<f32>(stream)?);
            let zeros = zeros.view.to_vec::<i32>(stream)?;
            let least = if dtype == DType::U8 { 0.0 } else { -128.0 };
            for (row, values) in rows.iter().enumerate() {
                let (expected, scale, zero) = oracle::quantize::asymmetric_by_the_letter(values, least);
                let same =
                    q[row * columns..][..columns].iter().zip(&expected).all(|(&q, &e)| q == f64::from(e));
                let right = same && scales[row].to_bits() == scale.to_bits() && zeros[row] == zero;
                ensure(right, || {
                    let got = (scales[row], zeros[row]);
                    format!(
                        "{dtype}: a row of {:?}, {columns} columns: {got:?} for {:?}",
                        kinds[row],
                        (scale, zero)
                    )
                })?;
            }
        }
    }
    Ok(())
}
