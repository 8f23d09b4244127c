//! Rows to experts and back; formulas from `halite_kernels::moe`.

use crate::tolerance::Bound;
use halite_kernels::moe::LocalExperts;

/// Where rows go.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Sorted {
    /// Token and slot of each row.
    pub order: Vec<(usize, usize)>,
    /// `[count + 1]`.
    pub offsets: Vec<i32>,
    /// `[tokens, top_k]`; -1 where the expert is elsewhere.
    pub places: Vec<i32>,
}

/// Sorts the slots of `ids`, `[tokens, top_k]`, by expert, then by token, then by slot.
pub fn sorted(local: LocalExperts, ids: &[i32], top_k: usize) -> Sorted {
    let (first, end) = (local.first as i64, (local.first + local.count) as i64);
    let mut order = Vec::new();
    let mut offsets = vec![0];
    for expert in first..end {
        for (place, &id) in ids.iter().enumerate() {
            if i64::from(id) == expert {
                order.push((place / top_k, place % top_k));
            }
        }
        offsets.push(order.len() as i32);
    }
    let mut places = vec![-1; ids.len()];
    for (place, &(token, slot)) in order.iter().enumerate() {
        places[token * top_k + slot] = place as i32;
    }
    Sorted { order, offsets, places }
}

/// One token's sum over its slots: `rows` gives a slot's row where it has one, and its weight.
pub fn combined(
    hidden: usize,
    slots: impl Iterator<Item = (Option<Vec<Bound>>, Option<f64>)>,
    added: &[Vec<Bound>],
) -> Vec<Bound> {
    let mut sum = vec![Bound::exact(0.0); hidden];
    for (row, weight) in slots {
        let Some(row) = row else { continue };
        for (sum, row) in sum.iter_mut().zip(row) {
            *sum = sum.plus(weight.map_or(row, |weight| row.times(Bound::exact(weight))));
        }
    }
    for added in added {
        for (sum, &added) in sum.iter_mut().zip(added) {
            *sum = sum.plus(added);
        }
    }
    sum
}
