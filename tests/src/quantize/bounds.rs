//! Quantised rows of every format, held against what they were made of.

use crate::{
    case::{Verdict, ensure},
    tolerance::{Bound, TINY, quantised},
};
use halite_kernels::{
    DType,
    linear::ActivationFormat,
    quantize::{QuantizeSpec, ScaleSource},
};

/// What shares one scale.
struct Shared<'a> {
    y: &'a [Bound],
    q: &'a [f64],
    scale: f64,
    zero: f64,
}

/// `y`, `q` are `[rows, columns]`; scales and zero points of the format's shape, zero points 0 where it has none.
pub(super) fn judge_rows(
    spec: &QuantizeSpec,
    columns: usize,
    y: &[Bound],
    q: &[f64],
    scales: &[f64],
    zeros: &[f64],
) -> Verdict {
    // Groups do not go on from a row to the next.
    let (within, size) = match spec.output {
        ActivationFormat::Int8PerTensor | ActivationFormat::AsymmetricPerTensor(_) => (y.len(), y.len()),
        ActivationFormat::Int8PerGroup { group_size } => (columns, group_size),
        _ => (columns, columns),
    };
    ensure(y.len() == q.len(), || "another number of elements".into())?;
    let (within, size) = (within.max(1), size.max(1));
    let parts = y.chunks(within).zip(q.chunks(within));
    let mut parts = parts.flat_map(|(y, q)| y.chunks(size).zip(q.chunks(size)));
    for (place, (&scale, &zero)) in scales.iter().zip(zeros).enumerate() {
        // Rows without columns have a scale all the same.
        let (y, q) = parts.next().unwrap_or_default();
        judge_shared(spec, &Shared { y, q, scale, zero })
            .map_err(|fault| crate::Fault(format!("scale {place}: {}", fault.0)))?;
    }
    ensure(parts.next().is_none(), || "fewer scales than groups".into())
}

fn judge_shared(spec: &QuantizeSpec, shared: &Shared<'_>) -> Verdict {
    let &Shared { y, q, scale, zero } = shared;
    let asymmetric = spec.output.has_zero_points();
    let (least, most) = match spec.output.dtype() {
        DType::U8 => (0.0, 255.0),
        _ if asymmetric => (-128.0, 127.0),
        _ => (-127.0, 127.0),
    };
    let mut expected = Bound::exact(scale);
    if spec.scales == ScaleSource::Dynamic {
        if y.iter().any(|y| !y.value.is_finite()) {
            return ensure(scale.is_nan() && zero == 0.0 && q.iter().all(|&q| q == 0.0), || {
                format!("NaN or infinity: expected zeros and a NaN scale, got {scale} and zero point {zero}")
            });
        }
        let low = y.iter().map(|y| y.value).fold(0.0, f64::min);
        let high = y.iter().map(|y| y.value).fold(0.0, f64::max);
        let error = y.iter().map(|y| y.error).fold(0.0, f64::max);
        expected = if asymmetric {
            Bound { value: high, error }.over(255.0).plus(Bound { value: -low, error }.over(255.0))
        } else {
            Bound { value: high.max(-low), error }.over(127.0)
        };
        expected.value = expected.value.max(TINY);
        ensure(expected.holds(scale) && scale >= TINY, || {
            format!("expected a scale of {:e} ± {:.2e}, got {scale:e}", expected.value, expected.error)
        })?;
        if asymmetric {
            let exact = (least - low / expected.value).clamp(least, most);
            let far = quantised(Bound { value: low, error }, expected);
            let right = (zero - exact).abs() <= far && (least..=most).contains(&zero);
            ensure(right, || format!("expected a zero point of {exact} rounded, got {zero}"))?;
        }
    }
    for (place, (&y, &q)) in y.iter().zip(q).enumerate() {
        let real = if y.value.is_nan() { 0.0 } else { y.value / expected.value };
        let far = if y.value.is_finite() { quantised(y, expected) } else { 0.0 };
        let [from, to] = [real - far, real + far].map(|steps| (steps + zero).clamp(least, most));
        ensure((from..=to).contains(&q), || {
            format!("element {place}: expected {} rounded, {from} to {to}, got {q}", real + zero)
        })?;
    }
    Ok(())
}
