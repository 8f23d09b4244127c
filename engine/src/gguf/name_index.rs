//! Finding things by name in a list that keeps the file's order.

/// Positions of a list, sorted by name. Four or eight bytes an entry, and no hashing an attacker could aim at.
#[derive(Debug, Default)]
pub(super) struct NameIndex {
    by_name: Vec<usize>,
}

impl NameIndex {
    /// The index of `items`, or the first item whose name stands twice.
    pub(super) fn new<'a, T>(items: &'a [T], name: impl Fn(&'a T) -> &'a str) -> Result<Self, &'a T> {
        let key = |at: &usize| items.get(*at).map(&name);
        let mut by_name: Vec<usize> = (0..items.len()).collect();
        by_name.sort_unstable_by_key(key);
        let twice = by_name.array_windows().find(|[left, right]| key(left) == key(right));
        match twice.and_then(|[left, _]| items.get(*left)) {
            Some(item) => Err(item),
            None => Ok(Self { by_name }),
        }
    }

    /// The item called `wanted` in the same list that the index was made of.
    pub(super) fn find<'a, T>(
        &self,
        items: &'a [T],
        wanted: &str,
        name: impl Fn(&T) -> &str,
    ) -> Option<&'a T> {
        let found = self
            .by_name
            .binary_search_by(|&at| items.get(at).map(&name).unwrap_or_default().cmp(wanted))
            .ok()?;
        items.get(*self.by_name.get(found)?)
    }
}
