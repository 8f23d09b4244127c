//! Row-major results that several tasks write at once, each its own columns.

use std::{marker::PhantomData, ops::Range};

use crate::{aligned::CACHE_LINE, simd::Isa};

/// A matrix to write to: `columns` values a row, rows `stride` apart.
///
/// Tasks that share a product across its columns write interleaved pieces of the same rows, which slices cannot
/// express: each task gets an alias and the promise is made where the aliases are.
pub(crate) struct OutputRows<'a, T> {
    start: *mut T,
    rows: usize,
    columns: usize,
    stride: usize,
    values: PhantomData<&'a mut [T]>,
}

// SAFETY: it is an exclusive borrow of the values, cut into pieces; sending it is sending those.
unsafe impl<T: Send> Send for OutputRows<'_, T> {}
// SAFETY: a shared handle only makes aliases, whose maker promises that they are apart.
unsafe impl<T: Send> Sync for OutputRows<'_, T> {}

impl<'a, T> OutputRows<'a, T> {
    /// As many rows as `values` holds, at most `rows`.
    ///
    /// # Panics
    /// Where `values` is too short or rows would overlap.
    pub(crate) fn new(values: &'a mut [T], rows: usize, columns: usize, stride: usize) -> Self {
        assert!(columns <= stride || rows <= 1, "rows of {columns} values, {stride} apart");
        let needed =
            rows.checked_sub(1).map_or(Some(0), |last| last.checked_mul(stride)?.checked_add(columns));
        assert!(
            needed.is_some_and(|needed| needed <= values.len()),
            "{rows} rows in {} values",
            values.len()
        );
        Self { start: values.as_mut_ptr(), rows, columns, stride, values: PhantomData }
    }

    /// Another handle to the same values, for another task.
    ///
    /// # Safety
    /// As long as both handles live, no element is in segments of both.
    pub(crate) unsafe fn alias(&self) -> Self {
        Self { ..*self }
    }

    /// Its columns in pieces of `width`, the last one of what is left, for as many tasks.
    pub(crate) fn pieces(self, width: usize) -> impl ExactSizeIterator<Item = Self> + Send
    where
        T: Send,
    {
        let width = width.max(1);
        (0..self.columns).step_by(width).map(move |first| {
            let whole = &self;
            // `new` checked that each row has `columns` values; where there are no rows, nothing is read.
            let start = whole.start.wrapping_add(first);
            Self { start, columns: width.min(whole.columns - first), ..*whole }
        })
    }

    /// Asks for the lines of `len` values from `column` on, of some rows.
    #[inline(always)]
    pub(crate) fn prefetch<I: Isa>(&self, isa: I, rows: Range<usize>, column: usize, len: usize) {
        for row in rows {
            let start = self.start.wrapping_add(row * self.stride + column).cast::<u8>();
            for line in (0..len * size_of::<T>()).step_by(CACHE_LINE) {
                isa.prefetch(start.wrapping_add(line));
            }
        }
    }

    /// `len` values of a row from `column` on.
    ///
    /// # Panics
    /// Where the matrix has no such values.
    #[inline(always)]
    pub(crate) fn segment(&mut self, row: usize, column: usize, len: usize) -> &mut [T] {
        assert!(row < self.rows && column <= self.columns && len <= self.columns - column);
        // SAFETY: `new` checked that the last row's last value is inside the slice it borrowed exclusively, the maker of
        // aliases promised that no other handle has these values, and pieces have columns of their own.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(row * self.stride + column), len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_lie_where_they_should() {
        let mut values = vec![0; 3 * 5 + 4];
        let mut out = OutputRows::new(&mut values, 4, 4, 5);
        out.segment(3, 2, 2).fill(1);
        out.segment(0, 0, 4).fill(2);
        out.segment(1, 4, 0).fill(3);
        assert_eq!(values, [2, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
    }

    #[test]
    fn pieces_are_apart_and_leave_nothing_out() {
        let mut values = vec![0; 3 * 7 + 5];
        for (piece, mut out) in OutputRows::new(&mut values, 4, 5, 7).pieces(2).enumerate() {
            for row in 0..4 {
                out.segment(row, 0, if piece < 2 { 2 } else { 1 }).fill(piece + 1);
            }
        }
        let row = [1, 1, 2, 2, 3];
        assert!(values.chunks(7).all(|values| values[..5] == row && values[5..].iter().all(|&x| x == 0)));
        assert_eq!(OutputRows::new(&mut [0; 0], 0, 5, 7).pieces(2).count(), 3);
    }

    #[test]
    #[should_panic(expected = "4 rows in 18 values")]
    fn a_short_slice_is_refused() {
        OutputRows::new(&mut [0; 18], 4, 4, 5);
    }

    #[test]
    #[should_panic]
    fn a_segment_beyond_the_columns_is_refused() {
        let mut values = [0; 20];
        OutputRows::new(&mut values, 4, 4, 5).segment(0, 3, 2);
    }
}
