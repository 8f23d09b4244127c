//! Quantisation; formulas from `halite_kernels::quantize`.

use crate::tolerance::{Bound, TINY, U};

/// The documented F32 arithmetic of one row, to the bit, for backends with IEEE division: `(q, scale)`.
pub fn by_the_letter(row: &[f32]) -> (Vec<i8>, f32) {
    if row.iter().any(|x| !x.is_finite()) {
        return (vec![0; row.len()], f32::NAN);
    }
    let largest = row.iter().fold(0f32, |largest, x| largest.max(x.abs()));
    let scale = (largest / 127.0).max(f32::MIN_POSITIVE);
    let inverse = 1.0 / scale;
    let q = row.iter().map(|x| (x * inverse).round_ties_even().clamp(-127.0, 127.0) as i8).collect();
    (q, scale)
}

/// The documented F32 arithmetic of one row with a zero point, of integers from `least` to `least + 255`:
/// `(q, scale, zero_point)`.
pub fn asymmetric_by_the_letter(row: &[f32], least: f32) -> (Vec<i32>, f32, i32) {
    if row.iter().any(|x| !x.is_finite()) {
        return (vec![0; row.len()], f32::NAN, 0);
    }
    let low = row.iter().fold(0f32, |low, &x| low.min(x));
    let high = row.iter().fold(0f32, |high, &x| high.max(x));
    let scale = (high / 255.0 - low / 255.0).max(f32::MIN_POSITIVE);
    let zero = (least - low / scale).round_ties_even().clamp(least, least + 255.0) as i32;
    (known_by_the_letter(row, scale, Some(zero), least), scale, zero)
}

/// The documented F32 arithmetic with a scale that is known; without a zero point symmetric.
pub fn known_by_the_letter(row: &[f32], scale: f32, zero: Option<i32>, least: f32) -> Vec<i32> {
    let one = |&x: &f32| {
        let steps = match zero {
            Some(_) => (x / scale).round_ties_even(),
            None => (x * (1.0 / scale)).round_ties_even(),
        };
        let steps = if steps.is_nan() { 0.0 } else { steps };
        match zero {
            Some(zero) => (steps + zero as f32).clamp(least, least + 255.0) as i32,
            None => steps.clamp(-127.0, 127.0) as i32,
        }
    };
    row.iter().map(one).collect()
}

/// What happens before: columns divided by `factors`, `outliers` set to 0, blocks of columns rotated, each where there is
/// one. The rotation is the matrix product.
pub fn prepared(
    x: &[Bound],
    columns: usize,
    factors: Option<&[f64]>,
    outliers: &[i32],
    block: Option<usize>,
) -> Vec<Bound> {
    let mut prepared = Vec::with_capacity(x.len());
    for row in x.chunks(columns.max(1)) {
        let mut y = smoothed(row, factors);
        for (column, y) in y.iter_mut().enumerate() {
            if outliers.contains(&(column as i32)) {
                *y = Bound::exact(0.0);
            }
        }
        match block {
            Some(block) => y.chunks(block).for_each(|block| prepared.extend(rotated(block))),
            None => prepared.extend(y),
        }
    }
    prepared
}

/// A row divided by `factors`. Results below the smallest normal number may be 0.
pub fn smoothed(row: &[Bound], factors: Option<&[f64]>) -> Vec<Bound> {
    match factors {
        Some(factors) => {
            let over = |(x, &factor): (&Bound, &f64)| x.over(factor).loosened(TINY);
            row.iter().zip(factors).map(over).collect()
        }
        None => row.to_vec(),
    }
}

fn rotated(block: &[Bound]) -> Vec<Bound> {
    let root = 1.0 / (block.len() as f64).sqrt();
    let row = |i: usize| {
        let sign = |j: usize| if (i & j).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
        let sum = Bound::sum(block.iter().enumerate().map(|(j, x)| sign(j) * x.value));
        let errors: f64 = block.iter().map(|x| x.error).sum();
        sum.loosened(errors).times(Bound { value: root, error: U * root }).loosened(TINY)
    };
    (0..block.len()).map(row).collect()
}
