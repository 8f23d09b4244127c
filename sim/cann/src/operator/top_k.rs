//! Selection of the largest, in what the documents leave open: which of equal ones comes first.

use std::sync::atomic::{AtomicU64, Ordering};

/// Indices of the `k` largest, largest first. Equal values are ordered differently from call to call.
pub(super) fn largest(values: &[f64], k: usize) -> Vec<usize> {
    static CALLS: AtomicU64 = AtomicU64::new(1);
    let seed = CALLS.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let scrambled = |index: usize| (index as u64 ^ seed).wrapping_mul(0xD129_8A2F_2C59_7E2D) >> 32;
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[b].total_cmp(&values[a]).then(scrambled(a).cmp(&scrambled(b))));
    order.truncate(k);
    order
}

/// e^x over its sum.
pub(super) fn softmax(values: &[f64]) -> Vec<f64> {
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = values.iter().map(|value| (value - largest).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.into_iter().map(|power| power / sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_come_first_and_equal_ones_in_no_order() {
        assert_eq!(largest(&[1.0, 4.0, -2.0, 3.0], 2), [1, 3]);
        let firsts: std::collections::BTreeSet<_> = (0..64).map(|_| largest(&[1.0; 8], 3)[0]).collect();
        assert!(firsts.len() > 1, "{firsts:?}");
    }
}
