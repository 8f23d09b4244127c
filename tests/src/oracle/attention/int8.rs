//! Attention in INT8, step by step; formulas from `halite_kernels::attention::AttentionCompute`.

use super::Sequence;
use crate::{
    oracle::quantize::by_the_letter,
    tolerance::{Bound, TINY, U, exponential, quantised},
};
use halite_kernels::attention::ValueProducts;

/// What attention in INT8 reads in place of keys and values.
#[derive(Clone, Debug)]
pub struct Int8<'a> {
    /// `[kv_len, kv_heads, head_dim]`, without their scales.
    pub k: &'a [f64],
    /// `[kv_len, kv_heads]`.
    pub k_scales: &'a [f64],
    /// `[kv_len, kv_heads, value_head_dim]`, without their scales.
    pub v: &'a [f64],
    /// `[kv_len, kv_heads]`.
    pub v_scales: &'a [f64],
    /// `[kv_len]`: the place in the whole sequence of each position that is here.
    pub positions: &'a [usize],
    /// Positions of a part.
    pub kv_split: usize,
    /// How values are weighted.
    pub values: ValueProducts,
}

/// The score of a query `[head_dim]` and position `j`, before a soft-cap.
pub(super) fn score(sequence: &Sequence<'_>, int8: &Int8<'_>, q: &[f64], kv_head: usize, j: usize) -> Bound {
    let at = j * sequence.kv_heads + kv_head;
    let k = &int8.k[at * sequence.head_dim..][..sequence.head_dim];
    let row: Vec<f32> = q.iter().map(|&x| x as f32).collect();
    let (integers, scale) = by_the_letter(&row);
    let scale = Bound::exact(127.0 * f64::from(scale)).over(127.0);
    let (mut dot, mut slack) = (0.0, 0.0);
    for ((&integer, &x), &k) in integers.iter().zip(q).zip(k) {
        dot += f64::from(integer) * k;
        // Near a tie the query may be one step off.
        let off = (x / scale.value - f64::from(integer)).abs();
        let allowed = quantised(Bound::exact(x), Bound::exact(scale.value));
        slack += if off > 1.0 - allowed { k.abs() } else { 0.0 };
    }
    // Beyond 2^24 the sum is rounded when it becomes a float.
    let rounded = if dot.abs() > 1.0 / U { U * dot.abs() } else { 0.0 };
    let factor = Bound::exact(int8.k_scales[at]).times(scale.times(Bound::exact(sequence.scale)));
    Bound { value: dot, error: slack + rounded }.times(factor)
}

/// The row's sum of exponentials, `e^(s - largest)`.
pub(super) struct Total {
    pub(super) largest: f64,
    pub(super) sum: f64,
    /// How far it may be off, of itself.
    pub(super) relative: f64,
}

/// `[value_head_dim]`: the values at the `visible` positions, weighted by their scores in 8 bits and divided by the
/// total.
pub(super) fn weighted(
    sequence: &Sequence<'_>,
    int8: &Int8<'_>,
    kv_head: usize,
    visible: &[usize],
    scores: &[Bound],
    total: &Total,
) -> Vec<Bound> {
    let dim = sequence.value_head_dim;
    let seen: Vec<(usize, Bound)> = visible.iter().copied().zip(scores.iter().copied()).collect();
    let part_of = |j: usize| int8.positions[j] / int8.kv_split;
    let parts: Vec<&[(usize, Bound)]> = seen.chunk_by(|a, b| part_of(a.0) == part_of(b.0)).collect();
    let mut out = vec![Bound::exact(0.0); dim];
    for part in &parts {
        let top = part.iter().map(|(_, score)| score.value).fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<Weight> = part
            .iter()
            .map(|&(j, score)| Weight::new(score, top, int8.v_scales[j * sequence.kv_heads + kv_head]))
            .collect();
        let greatest = weights.iter().map(|weight| weight.value).fold(0.0, f64::max);
        // A weight that may turn out to be the greatest is near it.
        let near = weights.iter().filter(|weight| weight.value >= greatest / 2.0);
        let relative = near.map(|weight| weight.relative).fold(0.0, f64::max);
        let scale = (greatest / 255.0).max(TINY);
        if weights.iter().any(|weight| !weight.value.is_finite()) {
            return vec![Bound::exact(f64::NAN); dim];
        }
        // Merged with the other parts: an exponential a merge, a product and a sum.
        let distance = top - total.largest;
        let merged = distance.exp() / total.sum;
        let own = relative + 2.0 * exponential(distance) + (8.0 + 3.0 * parts.len() as f64) * U;
        for (column, out) in out.iter_mut().enumerate() {
            let (mut sum, mut steps) = (0.0, 0.0);
            for (weight, &(j, _)) in weights.iter().zip(*part) {
                let v = int8.v[(j * sequence.kv_heads + kv_head) * dim + column];
                let (u, step) = weight.in_steps(scale, relative);
                sum += u * v;
                steps += step * v.abs();
            }
            let factor = scale * merged;
            out.value += sum * factor;
            out.error += (steps + sum.abs() * own) * factor;
            // Products below the smallest normal may be flushed.
            out.error += TINY * 256.0 * part.len() as f64;
        }
    }
    out.iter().map(|y| y.loosened(y.value.abs() * (total.relative + 8.0 * U))).collect()
}

/// A value's weight times its scale.
struct Weight {
    value: f64,
    /// How far it may be off, of itself.
    relative: f64,
}

impl Weight {
    fn new(score: Bound, top: f64, scale: f64) -> Self {
        let distance = score.value - top;
        let relative = score.error + U * distance.abs() + 2.0 * exponential(distance) + U;
        Weight { value: distance.exp() * scale, relative }
    }

    /// The weight in steps of `scale`, and how many steps it may be off, where the scale is off by `relative`.
    fn in_steps(&self, scale: f64, relative: f64) -> (f64, f64) {
        let exact = self.value / scale;
        // The scale's division, its reciprocal and a product.
        let far = exact * (self.relative + relative + 12.0 * U);
        let u = exact.round_ties_even().clamp(0.0, 255.0);
        let least = (exact - far).round_ties_even().clamp(0.0, 255.0);
        let most = (exact + far).round_ties_even().clamp(0.0, 255.0);
        (u, (most - u).max(u - least))
    }
}
