//! Weights quantised on the host, before they are packed: symmetric or with zero points, by channel or by group.

use super::{CHECK, MAX_ROTATION_BLOCK};
use halite_hal::Result;

/// Weights as integers.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct QuantizedWeights {
    /// `[rows, columns]`.
    pub q: Vec<i8>,
    /// `[rows]`, or `[rows, groups]`.
    pub scales: Vec<f32>,
    /// Of the scales' shape; empty where symmetric.
    pub zero_points: Vec<i8>,
}

/// Adding and subtracting it rounds to the nearest even integer where |x| < 2^22, and unlike
/// `round_ties_even` it needs no call on processors without an instruction for it.
pub(super) const ROUND: f32 = 1.5 * (1u32 << 23) as f32;

/// Symmetric INT8 of one row by the rule of [the module](crate::quantize); gives the scale. A row that holds a NaN or an
/// infinity gives zeros and NaN.
///
/// As many elements as the shorter of the two has.
pub fn quantize_row(row: &[f32], q: &mut [i8]) -> f32 {
    // NaN is lost by a maximum and kept by a sum of zeros.
    let finite = row.iter().fold(0.0, |finite, value| finite + value * 0.0) == 0.0;
    if !finite {
        q.iter_mut().zip(row).for_each(|(q, _)| *q = 0);
        return f32::NAN;
    }
    let largest = row.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
    let scale = (largest / 127.0).max(f32::MIN_POSITIVE);
    let inverse = 1.0 / scale;
    for (q, value) in q.iter_mut().zip(row) {
        let rounded = (value * inverse + ROUND) - ROUND;
        *q = rounded.clamp(-127.0, 127.0) as i8;
    }
    scale
}

/// I8 of one row with a zero point: `(scale, zero_point)`.
fn quantize_row_asymmetric(row: &[f32], q: &mut [i8]) -> (f32, i8) {
    if row.iter().any(|value| !value.is_finite()) {
        q.fill(0);
        return (f32::NAN, 0);
    }
    let low = row.iter().fold(0.0f32, |low, &value| low.min(value));
    let high = row.iter().fold(0.0f32, |high, &value| high.max(value));
    let scale = (high / 255.0 - low / 255.0).max(f32::MIN_POSITIVE);
    let zero = (-128.0 - low / scale).round_ties_even().clamp(-128.0, 127.0);
    for (q, value) in q.iter_mut().zip(row) {
        *q = ((value / scale).round_ties_even() + zero).clamp(-128.0, 127.0) as i8;
    }
    (scale, zero as i8)
}

/// INT8 with a scale a row of `[rows, columns]`, as [`HostWeights::Int8PerChannel`](crate::linear::HostWeights) takes it.
///
/// # Errors
/// Another number of values, or one that is not finite.
pub fn per_channel(weights: &[f32], columns: usize) -> Result<QuantizedWeights> {
    per_group(weights, columns, columns)
}

/// INT8 with a scale and a zero point a row of `[rows, columns]`, as
/// [`HostWeights::Int8PerChannelAsymmetric`](crate::linear::HostWeights) takes it.
///
/// # Errors
/// Another number of values, or one that is not finite.
pub fn per_channel_asymmetric(weights: &[f32], columns: usize) -> Result<QuantizedWeights> {
    check(weights, columns)?;
    let mut q = vec![0; weights.len()];
    let rows = weights.chunks_exact(columns).zip(q.chunks_exact_mut(columns));
    let (scales, zero_points) = rows.map(|(row, q)| quantize_row_asymmetric(row, q)).unzip();
    Ok(QuantizedWeights { q, scales, zero_points })
}

/// INT8 with a scale for each `group_size` columns of each row of `[rows, columns]`; a row's last group may be shorter.
///
/// # Errors
/// Another number of values, one that is not finite, or a group of no columns.
pub fn per_group(weights: &[f32], columns: usize, group_size: usize) -> Result<QuantizedWeights> {
    check(weights, columns)?;
    CHECK.positive("group_size", group_size)?;
    let (mut q, mut scales) = (vec![0; weights.len()], Vec::new());
    for (row, q) in weights.chunks_exact(columns).zip(q.chunks_exact_mut(columns)) {
        scales.extend(
            row.chunks(group_size).zip(q.chunks_mut(group_size)).map(|(row, q)| quantize_row(row, q)),
        );
    }
    Ok(QuantizedWeights { q, scales, zero_points: Vec::new() })
}

/// SmoothQuant's factors (arXiv:2211.10438, equation 4), `s[j] = max|X_j|^alpha / max|W_j|^(1 - alpha)`, of the largest
/// activation of each column and of weights `[rows, columns]`. A column that either has nothing in gets 1.
///
/// # Errors
/// Other numbers of values, or an `alpha` outside of 0 to 1.
pub fn smoothing_factors(largest: &[f32], weights: &[f32], alpha: f32) -> Result<Vec<f32>> {
    let columns = largest.len();
    check(weights, columns)?;
    CHECK.that((0.0..=1.0).contains(&alpha), "alpha", "0 to 1", alpha)?;
    let mut of_weights = vec![0f32; columns];
    for row in weights.chunks_exact(columns) {
        of_weights.iter_mut().zip(row).for_each(|(largest, w)| *largest = largest.max(w.abs()));
    }
    let factor = |(&x, &w): (&f32, &f32)| {
        let factor = f64::from(x).powf(alpha.into()) / f64::from(w).powf(1.0 - f64::from(alpha));
        let factor = factor as f32;
        let something = x > 0.0 && w > 0.0;
        if something && factor.is_normal() { factor } else { 1.0 }
    };
    Ok(largest.iter().zip(&of_weights).map(factor).collect())
}

/// Multiplies each column of weights `[rows, columns]` with its factor: what activations that are divided by it need.
///
/// # Errors
/// Another number of values.
pub fn smooth_weights(weights: &mut [f32], factors: &[f32]) -> Result<()> {
    check(weights, factors.len())?;
    for row in weights.chunks_exact_mut(factors.len()) {
        row.iter_mut().zip(factors).for_each(|(w, factor)| *w *= factor);
    }
    Ok(())
}

/// Rotates each block of columns of weights `[rows, columns]`: what activations that are rotated need, since the rotation
/// is its own inverse.
///
/// # Errors
/// A block that is no power of two, or does not divide the columns; another number of values.
pub fn rotate_weights(weights: &mut [f32], columns: usize, block: usize) -> Result<()> {
    check(weights, columns)?;
    let right = block.is_power_of_two() && block <= MAX_ROTATION_BLOCK && columns.is_multiple_of(block);
    CHECK.that(right, "block", format!("a power of two that divides {columns}"), block)?;
    let factor = 1.0 / (block as f32).sqrt();
    for block in weights.chunks_exact_mut(block) {
        let mut half = 1;
        while half < block.len() {
            for pair in block.chunks_exact_mut(2 * half) {
                let (left, right) = pair.split_at_mut(half);
                for (a, b) in left.iter_mut().zip(right) {
                    (*a, *b) = (*a + *b, *a - *b);
                }
            }
            half *= 2;
        }
        block.iter_mut().for_each(|w| *w *= factor);
    }
    Ok(())
}

pub(super) fn check(weights: &[f32], columns: usize) -> Result<()> {
    CHECK.positive("columns", columns)?;
    let whole = weights.len().is_multiple_of(columns);
    CHECK.that(whole, "weights", format!("whole rows of {columns}"), weights.len())?;
    match weights.iter().position(|w| !w.is_finite()) {
        Some(place) => {
            Err(CHECK.wrong("weights", "finite weights", format!("{} at {place}", weights[place])))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wavy(count: usize) -> Vec<f32> {
        (0..count).map(|i| ((i * 37 % 101) as f32 - 50.0) * 0.013).collect()
    }

    #[test]
    fn values_come_back_within_half_a_step() {
        let (rows, columns) = (3, 100);
        let weights = wavy(rows * columns);
        let symmetric = per_group(&weights, columns, 32).unwrap();
        assert_eq!(symmetric.scales.len(), rows * 4);
        let asymmetric = per_channel_asymmetric(&weights, columns).unwrap();
        for (place, &w) in weights.iter().enumerate() {
            let scale = symmetric.scales[place / columns * 4 + place % columns / 32];
            assert!((f32::from(symmetric.q[place]) * scale - w).abs() <= 0.5001 * scale);
            let (row, scale) = (place / columns, asymmetric.scales[place / columns]);
            let steps = f32::from(asymmetric.q[place]) - f32::from(asymmetric.zero_points[row]);
            assert!((steps * scale - w).abs() <= 1.0001 * scale, "the zero point is rounded too");
        }
        assert_eq!(per_channel(&weights, columns).unwrap().scales.len(), rows);
    }

    #[test]
    fn rows_of_zeros_constants_and_no_numbers() {
        let mut q = [7; 4];
        assert_eq!((quantize_row(&[0.0, -0.0, 0.0, 0.0], &mut q), q), (f32::MIN_POSITIVE, [0; 4]));
        assert!(quantize_row(&[1.0, f32::NAN, 0.0, 0.0], &mut q).is_nan() && q == [0; 4]);
        assert!(quantize_row(&[1.0, f32::INFINITY, 0.0, 0.0], &mut q).is_nan() && q == [0; 4]);
        let constant = per_channel_asymmetric(&[3.0; 4], 4).unwrap();
        let back = (f32::from(constant.q[0]) - f32::from(constant.zero_points[0])) * constant.scales[0];
        assert!((back - 3.0).abs() < 1e-6, "{back}");
    }

    #[test]
    fn ties_go_to_the_even_integer() {
        // The scale is exactly 1.
        let mut q = [0; 6];
        assert_eq!(quantize_row(&[127.0, 0.5, 1.5, 2.5, -0.5, -1.5], &mut q), 1.0);
        assert_eq!(q, [127, 0, 2, 2, 0, -2]);
        let scale = quantize_row(&[1e-45, -1e-40, 6e-38], &mut q);
        assert!(scale.is_finite() && scale >= f32::MIN_POSITIVE && q[0] == 0);
    }

    #[test]
    fn a_rotation_is_its_own_inverse_and_keeps_products() {
        let (columns, block) = (24, 8);
        let (x, w) = (wavy(columns), wavy(2 * columns));
        let dot = |x: &[f32], w: &[f32]| x.iter().zip(w).map(|(x, w)| f64::from(x * w)).sum::<f64>();
        let (mut turned_x, mut turned_w) = (x.clone(), w.clone());
        rotate_weights(&mut turned_x, columns, block).unwrap();
        rotate_weights(&mut turned_w, columns, block).unwrap();
        for (w, turned) in w.chunks(columns).zip(turned_w.chunks(columns)) {
            assert!((dot(&x, w) - dot(&turned_x, turned)).abs() < 1e-5);
        }
        rotate_weights(&mut turned_x, columns, block).unwrap();
        assert!(x.iter().zip(&turned_x).all(|(a, b)| (a - b).abs() < 1e-6));
    }

    #[test]
    fn smoothing_moves_outliers_into_weights() {
        let weights = [1.0, 0.25, 0.0, -4.0, 0.5, 0.0];
        let factors = smoothing_factors(&[16.0, 0.0, 2.0], &weights, 0.5).unwrap();
        // √16 / √4; a column without activations and one without weights stay as they are.
        assert_eq!(factors, [2.0, 1.0, 1.0]);
        // At the ends the exponent of one side is 0, and 0^0 is 1.
        assert_eq!(smoothing_factors(&[16.0, 0.0, 2.0], &weights, 1.0).unwrap(), [16.0, 1.0, 1.0]);
        assert_eq!(smoothing_factors(&[16.0, 0.0, 2.0], &weights, 0.0).unwrap(), [0.25, 1.0, 1.0]);
        let mut smoothed = weights;
        smooth_weights(&mut smoothed, &factors).unwrap();
        assert_eq!(smoothed, [2.0, 0.25, 0.0, -8.0, 0.5, 0.0]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(per_channel(&[1.0; 5], 2).is_err() && per_channel(&[1.0; 4], 0).is_err());
        assert!(per_channel(&[1.0, f32::NAN], 2).is_err() && per_group(&[1.0; 4], 2, 0).is_err());
        assert!(rotate_weights(&mut [1.0; 6], 6, 4).is_err() && rotate_weights(&mut [1.0; 6], 6, 3).is_err());
        assert!(smoothing_factors(&[1.0; 2], &[1.0; 4], 1.5).is_err());
    }
}
