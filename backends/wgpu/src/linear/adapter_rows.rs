//! The rows of a step by adapter.

use std::ops::Range;

/// Rows that have one adapter, in the order of all sorted rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AdapterRows {
    pub(super) adapter: usize,
    pub(super) rows: Range<usize>,
}

/// A step's rows sorted by adapter, then by row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sorted {
    /// Those that have rows, ascending.
    pub(super) adapters: Vec<AdapterRows>,
    /// The row at each place.
    pub(super) order: Vec<i32>,
    /// The place of each row; -1 of those without an adapter.
    pub(super) places: Vec<i32>,
}

impl Sorted {
    /// -1 is no adapter.
    pub(super) fn of(adapters: &[i32]) -> Self {
        let mut order: Vec<i32> =
            (0..).zip(adapters).filter_map(|(row, &adapter)| (adapter >= 0).then_some(row)).collect();
        order.sort_by_key(|&row| adapters[row as usize]);
        let mut sorted = Sorted { adapters: Vec::new(), places: vec![-1; adapters.len()], order };
        for (place, &row) in sorted.order.iter().enumerate() {
            sorted.places[row as usize] = place as i32;
            let adapter = adapters[row as usize] as usize;
            match sorted.adapters.last_mut() {
                Some(last) if last.adapter == adapter => last.rows.end = place + 1,
                _ => sorted.adapters.push(AdapterRows { adapter, rows: place..place + 1 }),
            }
        }
        sorted
    }

    /// The row where one begins whose rows are neighbours: they need not be copied together.
    pub(super) fn neighbours(&self, of: &AdapterRows) -> Option<usize> {
        let order = &self.order[of.rows.clone()];
        let first = *order.first()?;
        (0..).zip(order).all(|(step, &row)| row == first + step).then_some(first as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_by_adapter_and_keep_their_order() {
        let sorted = Sorted::of(&[2, 0, -1, 2, 0, 2]);
        assert_eq!(sorted.order, [1, 4, 0, 3, 5]);
        assert_eq!(sorted.places, [2, 0, -1, 3, 1, 4]);
        let found: Vec<_> = sorted.adapters.iter().map(|of| (of.adapter, of.rows.clone())).collect();
        assert_eq!(found, [(0, 0..2), (2, 2..5)]);
        assert_eq!(sorted.neighbours(&sorted.adapters[0]), None);
    }

    #[test]
    fn neighbours_are_told() {
        let sorted = Sorted::of(&[-1, 3, 3, 1]);
        let first: Vec<_> = sorted.adapters.iter().map(|of| sorted.neighbours(of)).collect();
        assert_eq!(first, [Some(3), Some(1)]);
        assert_eq!(Sorted::of(&[]), Sorted::default());
        assert_eq!(Sorted::of(&[-1]).adapters, []);
    }
}
