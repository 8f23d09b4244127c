//! Attention over whole sequences, without pages; formulas from `halite_kernels::attention`.

mod int8;
mod state;

pub use int8::Int8;
pub(super) use state::state_made;
pub use state::{State, state};

use crate::tolerance::{Bound, U, exponential, summing};
use halite_kernels::attention::{Mask, ValueProducts};

/// One sequence and some query rows of it.
#[derive(Clone, Debug)]
pub struct Sequence<'a> {
    /// `[q_len, query_heads, head_dim]`.
    pub q: &'a [f64],
    /// `[kv_len, kv_heads, head_dim]`, as the cache stores it.
    pub k: &'a [f64],
    /// `[kv_len, kv_heads, value_head_dim]`, as the cache stores it.
    pub v: &'a [f64],
    /// Query rows.
    pub q_len: usize,
    /// The position of the first query row, `kv_len - q_len` in a step; the others follow it.
    pub first: i64,
    /// Cached positions.
    pub kv_len: usize,
    /// Query heads.
    pub query_heads: usize,
    /// KV heads.
    pub kv_heads: usize,
    /// Elements of a key.
    pub head_dim: usize,
    /// Elements of a value.
    pub value_head_dim: usize,
    /// Factor of the scores.
    pub scale: f64,
    /// Bounds the scores.
    pub soft_cap: Option<f64>,
    /// Which positions a row sees.
    pub mask: Mask,
    /// `[q_len]` with a tree.
    pub tree_parents: &'a [i32],
    /// `[query_heads]`, with linear biases.
    pub alibi_slopes: Option<&'a [f32]>,
    /// `[query_heads]`, with sinks.
    pub sinks: Option<&'a [f64]>,
    /// For arithmetic in INT8, what is read in place of keys and values.
    pub int8: Option<Int8<'a>>,
}

/// Whether a row sees position `j`; an answer for the masks that the oracle knows.
fn sees(sequence: &Sequence<'_>, row: usize, j: usize) -> Option<bool> {
    let distance = i128::from(sequence.first) + row as i128 - j as i128;
    match sequence.mask {
        Mask::Causal => Some(distance >= 0),
        Mask::Bidirectional => Some(true),
        Mask::Sliding { window } => Some(distance >= 0 && distance < window as i128),
        Mask::Chunked { chunk } => {
            let own = distance + j as i128;
            Some(distance >= 0 && j as i128 / chunk as i128 == own / chunk as i128)
        }
        Mask::Tree => Some((j as i64) < sequence.first || descends(sequence, row as i64, j as i64)),
        _ => None,
    }
}

/// The positions that a row sees, where the oracle knows the mask.
fn visible(sequence: &Sequence<'_>, row: usize) -> Option<Vec<usize>> {
    let sees: Option<Vec<bool>> = (0..sequence.kv_len).map(|j| sees(sequence, row, j)).collect();
    sees.map(|sees| (0..sequence.kv_len).filter(|&j| sees[j]).collect())
}

/// Whether a tree's row is the one at position `j` or has it among its ancestors.
fn descends(sequence: &Sequence<'_>, mut row: i64, j: i64) -> bool {
    while row >= 0 {
        if sequence.first + row == j {
            return true;
        }
        row = i64::from(sequence.tree_parents[row as usize]);
    }
    false
}

/// How far queries, keys and values may be off that a backend makes by rounding, where the sequence has the exact ones.
pub(super) trait Made {
    /// The product of a row's query and a position's key.
    fn product(&self, row: usize, head: usize, position: usize) -> f64;
    /// One element of a head's value.
    fn value(&self, head: usize, position: usize, column: usize) -> f64;
}

/// What is read as it is.
struct Stored;

impl Made for Stored {
    fn product(&self, _: usize, _: usize, _: usize) -> f64 {
        0.0
    }
    fn value(&self, _: usize, _: usize, _: usize) -> f64 {
        0.0
    }
}

/// `(out [q_len, query_heads, value_head_dim], log_sum_exp [q_len, query_heads])`.
pub fn attend(sequence: &Sequence<'_>) -> (Vec<Bound>, Vec<Bound>) {
    attend_made(sequence, &Stored)
}

/// [`attend`], of queries, keys and values that were made.
pub(super) fn attend_made(sequence: &Sequence<'_>, made: &dyn Made) -> (Vec<Bound>, Vec<Bound>) {
    let (mut out, mut log_sum_exp) = (Vec::new(), Vec::new());
    for row in 0..sequence.q_len {
        let visible = visible(sequence, row);
        for head in 0..sequence.query_heads {
            // A mask that the oracle does not know makes every comparison fail.
            let unknown = || (vec![Bound::exact(f64::NAN); sequence.value_head_dim], Bound::exact(f64::NAN));
            let (values, lse) = visible
                .as_deref()
                .map_or_else(unknown, |visible| one_row(sequence, made, (row, head), visible));
            out.extend(values);
            log_sum_exp.push(lse);
        }
    }
    (out, log_sum_exp)
}

/// The score of one position, a linear bias included.
fn score(sequence: &Sequence<'_>, made: &dyn Made, (row, head): (usize, usize), j: usize) -> Bound {
    let &Sequence { head_dim, query_heads, kv_heads, scale, .. } = sequence;
    let kv_head = head / (query_heads / kv_heads);
    let q = &sequence.q[(row * query_heads + head) * head_dim..][..head_dim];
    let k = &sequence.k[(j * kv_heads + kv_head) * head_dim..][..head_dim];
    let score = match &sequence.int8 {
        Some(int8) => int8::score(sequence, int8, q, kv_head, j),
        None => {
            let product = Bound::sum(q.iter().zip(k).map(|(q, k)| q * k));
            product.loosened(made.product(row, head, j)).times(Bound::exact(scale))
        }
    };
    let score = sequence.soft_cap.map_or(score, |cap| score.soft_capped(cap));
    let Some(slopes) = sequence.alibi_slopes else { return score };
    let distance = (sequence.first + row as i64 - j as i64).unsigned_abs() as f64;
    score.plus(Bound::exact(-f64::from(slopes[head])).times(Bound::exact(distance)))
}

fn one_row(
    sequence: &Sequence<'_>,
    made: &dyn Made,
    (row, head): (usize, usize),
    visible: &[usize],
) -> (Vec<Bound>, Bound) {
    let &Sequence { value_head_dim, query_heads, kv_heads, .. } = sequence;
    let sink = sequence.sinks.map(|sinks| sinks[head]);
    if visible.is_empty() {
        let lse = sink.unwrap_or(f64::NEG_INFINITY);
        return (vec![Bound::exact(0.0); value_head_dim], Bound::exact(lse));
    }
    let kv_head = head / (query_heads / kv_heads);
    let mut scores: Vec<Bound> = visible.iter().map(|&j| score(sequence, made, (row, head), j)).collect();
    // A sink is a last position whose value is zero; one of minus infinity is none.
    scores.extend(sink.filter(|&sink| sink != f64::NEG_INFINITY).map(Bound::exact));
    let largest = scores.iter().map(|score| score.value).fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = scores.iter().map(|score| (score.value - largest).exp()).collect();
    let total: f64 = weights.iter().sum();
    // How far each weight may be off, relative: its score, the subtraction, the exponential; merging parts
    // multiplies by further exponentials of no larger arguments.
    let relative: Vec<f64> = scores
        .iter()
        .map(|score| {
            let distance = score.value - largest;
            score.error + U * distance.abs() + 2.0 * exponential(distance)
        })
        .collect();
    let n = scores.len();
    let mut relative_total = summing(n) + 8.0 * U;
    for (weight, relative) in weights.iter().zip(&relative) {
        relative_total += weight / total * relative;
    }
    let value = largest + total.ln();
    // The maximum is off as the scores are; `ln` has an absolute error of a few units.
    let peak = scores.iter().map(|score| score.error).fold(0.0, f64::max);
    let error = relative_total + peak + 8.0 * U + 4.0 * U * (largest.abs() + total.ln().abs());
    let log_sum_exp = Bound { value, error };
    if let Some(int8) = sequence.int8.as_ref().filter(|int8| int8.values == ValueProducts::Int8) {
        let total = int8::Total { largest, sum: total, relative: relative_total };
        return (int8::weighted(sequence, int8, kv_head, visible, &scores, &total), log_sum_exp);
    }
    let out = (0..value_head_dim)
        .map(|column| {
            let v = |i: usize| {
                let at = |&j: &usize| sequence.v[(j * kv_heads + kv_head) * value_head_dim + column];
                visible.get(i).map_or(0.0, at)
            };
            let value: f64 = (0..n).map(|i| weights[i] * v(i)).sum::<f64>() / total;
            let mut error = 0.0;
            for (i, weight) in weights.iter().enumerate() {
                let p = weight / total;
                error += p * (relative[i] * (v(i) - value).abs() + (summing(n) + 8.0 * U) * v(i).abs());
                let own = visible.get(i).map_or(0.0, |&j| made.value(head, j, column));
                error += p * own * (1.0 + relative[i] + summing(n));
            }
            // Weights below the smallest normal may be flushed.
            let least = 1e-37 * (1.0 + (0..n).map(|i| v(i).abs()).fold(0.0, f64::max));
            Bound { value, error: error + (summing(n) + 8.0 * U) * value.abs() + least }
        })
        .collect();
    (out, log_sum_exp)
}

/// Attention over some of the positions.
#[derive(Clone, Debug)]
pub struct Partial {
    /// `[rows, value_head_dim]`.
    pub out: Vec<Bound>,
    /// `[rows]`.
    pub log_sum_exp: Vec<Bound>,
}

/// Partial results of the same rows over disjoint sets of positions, merged.
pub fn merge(value_head_dim: usize, parts: &[Partial]) -> Partial {
    let rows = parts.first().map_or(0, |part| part.log_sum_exp.len());
    let mut merged = Partial { out: Vec::new(), log_sum_exp: Vec::new() };
    for row in 0..rows {
        // A part that saw nothing has no say, whatever its output holds.
        let live: Vec<(Bound, &[Bound])> = parts
            .iter()
            .map(|part| (part.log_sum_exp[row], &part.out[row * value_head_dim..][..value_head_dim]))
            .filter(|(log, _)| log.value != f64::NEG_INFINITY)
            .collect();
        let most = live.iter().map(|(log, _)| log.value).fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = live.iter().map(|(log, _)| (log.value - most).exp()).collect();
        let total: f64 = weights.iter().sum();
        if live.is_empty() {
            merged.out.extend(vec![Bound::exact(0.0); value_head_dim]);
            merged.log_sum_exp.push(Bound::exact(f64::NEG_INFINITY));
            continue;
        }
        // How far each weight may be off, relative: its logarithm, the subtraction, the exponential.
        let relative = |(log, _): &(Bound, &[Bound])| {
            let distance = log.value - most;
            log.error + U * distance.abs() + 2.0 * exponential(distance)
        };
        let relative: Vec<f64> = live.iter().map(relative).collect();
        let own = summing(live.len()) + 8.0 * U;
        for column in 0..value_head_dim {
            let parts = || live.iter().zip(&weights).map(|((_, out), weight)| (out[column], weight / total));
            let value: f64 = parts().map(|(out, share)| share * out.value).sum();
            let mut error = own * value.abs() + 1e-37 * (1.0 + value.abs());
            for ((out, share), relative) in parts().zip(&relative) {
                error += share * (out.error + relative * (out.value - value).abs() + own * out.value.abs());
            }
            merged.out.push(Bound { value, error });
        }
        let peak = live.iter().map(|(log, _)| log.error).fold(0.0, f64::max);
        let shares = weights.iter().map(|weight| weight / total);
        let weighed: f64 = shares.zip(&relative).map(|(share, relative)| share * relative).sum();
        let error = own + weighed + peak + 8.0 * U + 4.0 * U * (most.abs() + total.ln().abs());
        merged.log_sum_exp.push(Bound { value: most + total.ln(), error });
    }
    merged
}
