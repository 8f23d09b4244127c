//! 4-bit weights from floats, on the host: symmetric groups, each with the scale that leaves the least squared error.

use super::{
    CHECK,
    weights::{QuantizedWeights, ROUND, check},
};
use halite_hal::Result;

/// Scales that are tried: the largest magnitude becomes so many steps. Beyond 7 the largest are cut off, where they are not
/// negative; the many small ones gain by it.
const STEPS: [f32; 11] = [6.0, 6.25, 6.5, 6.75, 7.0, 7.25, 7.5, 7.75, 8.0, 8.25, 8.5];

/// Sums are of so many chains, so that they are vectors on every processor. Their order is part of the result.
const CHAINS: usize = 8;

/// Symmetric 4-bit integers of one group, from -8 to 7; gives the scale. A group that holds a NaN or an infinity gives zeros
/// and NaN, one of zeros the smallest normal scale.
///
/// For each of some steps `c` around 7: `q = clamp(round_ties_even(x / max|x| · c), -8, 7)` and the scale of least squares for
/// them, `Σ x q / Σ q²`. The `c` with the least squared error is taken, the first of several. A scale below the smallest
/// normal number becomes that one, and integers go by it.
///
/// As many elements as the shorter of the two has.
pub fn quantize_int4_group(group: &[f32], q: &mut [i8]) -> f32 {
    let len = group.len().min(q.len());
    let (group, q) = (&group[..len], &mut q[..len]);
    let finite = group.iter().fold(0.0, |finite, value| finite + value * 0.0) == 0.0;
    if !finite {
        q.fill(0);
        return f32::NAN;
    }
    let largest = group.iter().fold(f32::MIN_POSITIVE, |largest, value| largest.max(value.abs()));
    // Squares of parts of the largest neither overflow nor vanish.
    let part = |x: &f32| x / largest;
    let (mut best, mut least, mut scale) = (STEPS[0], f32::NEG_INFINITY, 0.0);
    for steps in STEPS {
        let (mut products, mut squares) = ([0f32; CHAINS], [0f32; CHAINS]);
        let (whole, rest) = group.as_chunks::<CHAINS>();
        let mut add = |lane: usize, x: &f32| {
            let q = rounded(part(x), steps);
            products[lane] += part(x) * q;
            squares[lane] += q * q;
        };
        for chunk in whole {
            chunk.iter().enumerate().for_each(|(lane, x)| add(lane, x));
        }
        rest.iter().enumerate().for_each(|(lane, x)| add(lane, x));
        let (product, square) = (products.iter().sum::<f32>(), squares.iter().sum::<f32>());
        // The squared error is Σ x² less this.
        let explained = if square > 0.0 { product * product / square } else { 0.0 };
        if explained > least {
            (best, least) = (steps, explained);
            scale = if square > 0.0 { product / square } else { 0.0 };
        }
    }
    let scale = scale * largest;
    if scale < f32::MIN_POSITIVE {
        let part = |x: &f32| x / f32::MIN_POSITIVE;
        q.iter_mut().zip(group).for_each(|(q, x)| *q = rounded(part(x), 1.0) as i8);
        return f32::MIN_POSITIVE;
    }
    q.iter_mut().zip(group).for_each(|(q, x)| *q = rounded(part(x), best) as i8);
    scale
}

/// `part` is at most 8.5 in size, and so are its steps together.
#[inline(always)]
fn rounded(part: f32, steps: f32) -> f32 {
    ((part * steps + ROUND) - ROUND).clamp(-8.0, 7.0)
}

/// 4 bits, symmetric, with a scale for each `group_size` columns of each row of `[rows, columns]`, as
/// [`HostWeights::Int4PerGroup`](crate::linear::HostWeights) takes them; a row's last group may be shorter.
/// [`quantize_int4_group`] has the rule.
///
/// # Errors
/// Another number of values, one that is not finite, or a group of no columns.
pub fn int4_per_group(weights: &[f32], columns: usize, group_size: usize) -> Result<QuantizedWeights> {
    check(weights, columns)?;
    CHECK.positive("group_size", group_size)?;
    let (mut q, mut scales) = (vec![0; weights.len()], Vec::new());
    for (row, q) in weights.chunks_exact(columns).zip(q.chunks_exact_mut(columns)) {
        let groups = row.chunks(group_size).zip(q.chunks_mut(group_size));
        scales.extend(groups.map(|(group, q)| quantize_int4_group(group, q)));
    }
    Ok(QuantizedWeights { q, scales, zero_points: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// About normal, by sums of uniform numbers.
    fn bell(count: usize) -> Vec<f32> {
        let mut state = 1u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1u64 << 24) as f32 - 0.5
        };
        (0..count).map(|_| (0..12).map(|_| uniform()).sum()).collect()
    }

    fn error(group: &[f32], q: &[i8], scale: f32) -> f64 {
        let square = |(&x, &q): (&f32, &i8)| f64::from(x - f32::from(q) * scale).powi(2);
        group.iter().zip(q).map(square).sum()
    }

    #[test]
    fn groups_are_closer_than_by_their_largest_magnitude() {
        let weights = bell(32 * 200);
        let made = int4_per_group(&weights, 32, 32).unwrap();
        assert!(made.q.iter().all(|q| (-8..=7).contains(q)) && made.scales.iter().all(|&scale| scale > 0.0));
        let (mut ours, mut plain) = (0.0, 0.0);
        for ((group, q), &scale) in weights.chunks(32).zip(made.q.chunks(32)).zip(&made.scales) {
            let largest = group.iter().fold(0.0f32, |largest, x| largest.max(x.abs())) / 7.0;
            let by_largest: Vec<i8> = group.iter().map(|x| (x / largest).round_ties_even() as i8).collect();
            let (least, simple) = (error(group, q, scale), error(group, &by_largest, largest));
            assert!(least <= simple * 1.0001, "{least} {simple}");
            (ours, plain) = (ours + least, plain + simple);
        }
        assert!(ours < 0.85 * plain, "{ours} of {plain}");
    }

    #[test]
    fn groups_of_zeros_of_any_size_and_of_no_numbers() {
        let mut q = [7; 5];
        assert_eq!((quantize_int4_group(&[0.0; 5], &mut q), q), (f32::MIN_POSITIVE, [0; 5]));
        assert!(quantize_int4_group(&[1.0, f32::NAN, 0.0, 0.0, 0.0], &mut q).is_nan() && q == [0; 5]);
        for size in [1e-38f32, 1.0, 1e38] {
            let group = [-3.0 * size, 1.5 * size, 0.0, -0.375 * size, 3.0 * size];
            let scale = quantize_int4_group(&group, &mut q);
            assert!(scale.is_finite() && scale > 0.0);
            for (x, &q) in group.iter().zip(&q) {
                assert!((x - f32::from(q) * scale).abs() < 0.6 * scale, "{x}: {q} of {scale}");
            }
        }
        assert!(quantize_int4_group(&[1e-45, -1e-45], &mut q[..2]) >= f32::MIN_POSITIVE);
    }

    /// What 4 bits hold already comes back as it was.
    #[test]
    fn values_of_four_bits_are_kept() {
        let group: Vec<f32> = (0..32).map(|i| (i % 16 - 8) as f32 * 0.125).collect();
        let mut q = vec![0; 32];
        assert_eq!(quantize_int4_group(&group, &mut q), 0.125);
        assert!(q.iter().zip(0..).all(|(&q, i)| i32::from(q) == i % 16 - 8));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(int4_per_group(&[1.0; 5], 2, 2).is_err() && int4_per_group(&[1.0; 4], 2, 0).is_err());
        assert_eq!(int4_per_group(&[1.0; 80], 40, 32).unwrap().scales.len(), 4, "short last groups");
    }
}
