//! States of rows after some of their positions; formulas from `halite_kernels::attention::AttentionState`.

use super::{Made, Sequence, Stored, int8, score, visible};
use crate::tolerance::{Bound, U, exponential, summing};
use halite_kernels::attention::ValueProducts;
use std::ops::Range;

/// States of rows and heads.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// `[q_len, query_heads]`: the greatest score.
    pub max: Vec<Bound>,
    /// `[q_len, query_heads]`: the sum of exponentials, of scores less the greatest.
    pub sum: Vec<Bound>,
    /// `[q_len, query_heads, value_head_dim]`: the values weighted with them.
    pub values: Vec<Bound>,
}

/// What every row knows of the positions that it sees of `read`, and of no others.
pub fn state(sequence: &Sequence<'_>, read: Range<usize>) -> State {
    state_made(sequence, &Stored, read)
}

/// [`state`], of queries, keys and values that were made.
pub(in crate::oracle) fn state_made(sequence: &Sequence<'_>, made: &dyn Made, read: Range<usize>) -> State {
    let mut state = State::default();
    for row in 0..sequence.q_len {
        let seen: Option<Vec<usize>> =
            visible(sequence, row).map(|seen| seen.into_iter().filter(|j| read.contains(j)).collect());
        for head in 0..sequence.query_heads {
            match seen.as_deref() {
                Some(seen) => one_row(sequence, made, (row, head), seen, &mut state),
                // A mask that the oracle does not know makes every comparison fail.
                None => push(&mut state, [Bound::exact(f64::NAN); 2], nothing(sequence, f64::NAN)),
            }
        }
    }
    state
}

fn nothing(sequence: &Sequence<'_>, value: f64) -> Vec<Bound> {
    vec![Bound::exact(value); sequence.value_head_dim]
}

fn push(state: &mut State, [max, sum]: [Bound; 2], values: Vec<Bound>) {
    state.max.push(max);
    state.sum.push(sum);
    state.values.extend(values);
}

fn one_row(
    sequence: &Sequence<'_>,
    made: &dyn Made,
    (row, head): (usize, usize),
    seen: &[usize],
    state: &mut State,
) {
    let &Sequence { value_head_dim, query_heads, kv_heads, .. } = sequence;
    let kv_head = head / (query_heads / kv_heads);
    if seen.is_empty() {
        let empty = [Bound::exact(f64::NEG_INFINITY), Bound::exact(0.0)];
        return push(state, empty, nothing(sequence, 0.0));
    }
    let scores: Vec<Bound> = seen.iter().map(|&j| score(sequence, made, (row, head), j)).collect();
    let largest = scores.iter().map(|score| score.value).fold(f64::NEG_INFINITY, f64::max);
    // The greatest score may turn out to be another, and is off as scores are: all weights by the same factor.
    let peak = scores.iter().map(|score| score.error).fold(0.0, f64::max);
    // A weight's score, the subtraction and the exponential; merging parts multiplies by further ones.
    let weights: Vec<(f64, f64)> = scores
        .iter()
        .map(|score| {
            let distance = score.value - largest;
            let relative = score.error + peak + U * distance.abs() + 2.0 * exponential(distance);
            (distance.exp(), relative)
        })
        .collect();
    let own = summing(scores.len()) + 8.0 * U;
    let sum = Bound {
        value: weights.iter().map(|(weight, _)| weight).sum(),
        error: weights.iter().map(|(weight, relative)| weight * (relative + own)).sum(),
    };
    let max = Bound { value: largest, error: peak };
    if let Some(int8) = sequence.int8.as_ref().filter(|int8| int8.values == ValueProducts::Int8) {
        let total = int8::Total { largest, sum: 1.0, relative: peak };
        return push(state, [max, sum], int8::weighted(sequence, int8, kv_head, seen, &scores, &total));
    }
    let values = (0..value_head_dim)
        .map(|column| {
            let (mut value, mut error) = (0.0, 0.0);
            for ((weight, relative), &j) in weights.iter().zip(seen) {
                let v = sequence.v[(j * kv_heads + kv_head) * value_head_dim + column];
                value += weight * v;
                error += weight * (v.abs() * (relative + own) + made.value(head, j, column) * (1.0 + own));
                // Weights below the smallest normal may be flushed.
                error += 1e-37 * v.abs();
            }
            Bound { value, error }
        })
        .collect();
    push(state, [max, sum], values);
}
