//! Embedding, pooling and L2 normalising; formulas from `halite_kernels::embedding`.

use crate::tolerance::Bound;
use halite_kernels::embedding::Pooling;
use std::ops::Range;

/// Rows of a table of `hidden` columns by id, times `factor`; zeros for ids outside of it. `table` holds the elements,
/// dequantised.
pub fn rows(table: &[Bound], hidden: usize, ids: &[i32], factor: f64) -> Vec<Bound> {
    let vocabulary = (table.len() / hidden.max(1)) as i64;
    let mut out = Vec::new();
    for &id in ids {
        for column in 0..hidden {
            out.push(if i64::from(id) < 0 || i64::from(id) >= vocabulary {
                Bound::exact(0.0)
            } else {
                let element = table[id as usize * hidden + column];
                // A factor of 1 leaves every bit as it is.
                if factor == 1.0 { element } else { element.times(Bound::exact(factor)) }
            });
        }
    }
    out
}

/// One sequence's row, of its tokens' rows in `x`.
pub fn pool(pooling: Pooling, x: &[f64], hidden: usize, tokens: Range<usize>) -> Vec<Bound> {
    let at = |token: usize, column: usize| x[token * hidden + column];
    (0..hidden)
        .map(|column| {
            if tokens.is_empty() {
                return Bound::exact(0.0);
            }
            match pooling {
                Pooling::First => Bound::exact(at(tokens.start, column)),
                Pooling::Last => Bound::exact(at(tokens.end - 1, column)),
                Pooling::Mean if tokens.len() == 1 => Bound::exact(at(tokens.start, column)),
                Pooling::Mean => {
                    Bound::sum(tokens.clone().map(|token| at(token, column))).over(tokens.len() as f64)
                }
                _ => Bound::exact(f64::NAN),
            }
        })
        .collect()
}

/// One row of length 1, or shorter where its length is below `eps`.
pub fn l2_normalize(eps: f64, x: &[f64]) -> Vec<Bound> {
    let squares = Bound::sum(x.iter().map(|x| x * x));
    if squares.value.is_infinite() {
        return x.iter().map(|&x| Bound::exact(x * 0.0)).collect();
    }
    let least = Bound::exact(eps * eps);
    // The length and the least length cross where their squares do; NaN is neither greater nor less.
    let square = if squares.value < least.value {
        // Near the crossing a backend may take the other.
        least.loosened((squares.value + squares.error - least.value).max(0.0))
    } else {
        squares
    };
    let inverse = square.inverse_root();
    x.iter().map(|&x| Bound::exact(x).times(inverse)).collect()
}
