//! Embedding; formulas from `halite_kernels::embedding`.

use crate::tolerance::Bound;

/// Rows of a table of `hidden` columns by id, times `factor`; zeros for ids outside of it. `scales` belong to INT8
/// tables.
pub fn rows(table: &[f64], scales: Option<&[f64]>, hidden: usize, ids: &[i32], factor: f64) -> Vec<Bound> {
    let vocabulary = (table.len() / hidden.max(1)) as i64;
    let mut out = Vec::new();
    for &id in ids {
        for column in 0..hidden {
            out.push(if i64::from(id) < 0 || i64::from(id) >= vocabulary {
                Bound::exact(0.0)
            } else {
                let element = Bound::exact(table[id as usize * hidden + column]);
                let element = match scales {
                    Some(scales) => element.times(Bound::exact(scales[id as usize])),
                    None => element,
                };
                // A factor of 1 leaves every bit as it is.
                if factor == 1.0 { element } else { element.times(Bound::exact(factor)) }
            });
        }
    }
    out
}
