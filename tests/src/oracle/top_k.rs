//! The order of a row; rules from `halite_kernels::top_k`.

use halite_kernels::top_k::TopKOrder;
use std::cmp::Ordering;

/// All columns of a row, best first: NaN last, ties to the lower column.
pub fn ranking(order: TopKOrder, row: &[f64]) -> Vec<usize> {
    let mut known: Vec<usize> = (0..row.len()).filter(|&id| !row[id].is_nan()).collect();
    // Stable, so that equal values, zeros of either sign among them, stay in ascending column.
    known.sort_by(|&a, &b| {
        let ascending = row[a].partial_cmp(&row[b]).unwrap_or(Ordering::Equal);
        if order == TopKOrder::Smallest { ascending } else { ascending.reverse() }
    });
    known.extend((0..row.len()).filter(|&id| row[id].is_nan()));
    known
}
