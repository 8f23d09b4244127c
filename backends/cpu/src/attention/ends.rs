//! Where a task's rows begin and end: queries widened and states taken over, results or states written.
//!
//! Kernels of their own, entered once a task, so that they are compiled once an instruction set and not with every source
//! of keys and values.

use super::{
    choice::Products,
    int8,
    stage::{PartShape, stage_query},
    state::{Line, MAX_ROWS, State},
};
use crate::{
    linear::output::OutputRows,
    simd::{Isa, Kernel},
    view::{Reader, Rows, with_float},
};
use halite_hal::DType;
use std::ops::Range;

/// A task's rows: tokens, and within each the heads that share the KV head.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskRows {
    /// The first token's row of the tensors.
    pub(super) first: usize,
    /// How many tokens.
    pub(super) tokens: usize,
    pub(super) kv_head: usize,
    /// Query heads of the KV head.
    pub(super) group: usize,
}

impl TaskRows {
    pub(super) fn count(&self) -> usize {
        self.tokens * self.group
    }

    /// The row's token, counted from the task's first.
    pub(super) fn token(&self, row: usize) -> usize {
        row / self.group
    }

    pub(super) fn query_head(&self, row: usize) -> usize {
        self.kv_head * self.group + row % self.group
    }

    /// The row's place in the call's tensors: token and query head.
    fn place(&self, row: usize) -> (usize, usize) {
        (self.first + self.token(row), self.query_head(row))
    }

    /// The rows of each tile, and the lines of its state.
    pub(super) fn tiles(
        self,
        states: &mut [Line],
        v_dim: usize,
    ) -> impl Iterator<Item = (Range<usize>, &mut [Line])> {
        tiles(self.count()).zip(states.chunks_mut(State::lines(MAX_ROWS, v_dim)))
    }
}

/// The rows of each tile of a task: as many as a tile holds, and what is left.
fn tiles(rows: usize) -> impl Iterator<Item = Range<usize>> {
    (0..rows).step_by(MAX_ROWS).map(move |start| start..rows.min(start + MAX_ROWS))
}

/// `[tokens, query_heads, head_dim]` of a floating-point type.
#[derive(Clone, Copy)]
pub(super) struct Queries<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) dtype: DType,
    pub(super) rows: Rows,
}

/// Puts a task's queries where tiles read them, in the form that the arithmetic wants.
pub(super) struct StageQueries<'a> {
    pub(super) rows: TaskRows,
    pub(super) shape: PartShape,
    pub(super) from: Queries<'a>,
    /// `[rows][query_stride]`
    pub(super) to: &'a mut [f32],
}

impl Kernel for StageQueries<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { rows, shape, from, to } = self;
        with_float!(from.dtype, Float => {
            // Allocations are aligned to 64 bytes and offsets to the element, so the cast never fails.
            let q: &[Float] = bytemuck::cast_slice(from.bytes);
            for (row, to) in to.chunks_mut(shape.query_stride()).enumerate().take(rows.count()) {
                let (token, head) = rows.place(row);
                let q = &q[from.rows.start(token, head)..][..shape.head_dim()];
                match shape.products() {
                    Products::Floats => stage_query(isa, q, to),
                    Products::Int8Scores | Products::Int8 => int8::stage_query(isa, q, to),
                }
            }
        });
    }
}

/// Makes a task's states: empty, or those that an earlier call handed on, `[max, sum, values]`.
pub(super) fn begin(rows: TaskRows, v_dim: usize, from: Option<&[Reader<'_, f32>; 3]>, states: &mut [Line]) {
    for (tile, lines) in rows.tiles(states, v_dim) {
        let mut state = State::new(tile.len(), v_dim, lines);
        state.clear();
        let Some([max, sum, values]) = from else { continue };
        for row in tile.clone() {
            let (token, head) = rows.place(row);
            let of = |reader: &Reader<'_, f32>| reader.data()[token * reader.rows.outer_stride + head];
            let values = &values.data()[values.rows.start(token, head)..][..v_dim];
            state.take_over(row - tile.start, of(max), of(sum), values);
        }
    }
}

/// Where a task's rows go.
pub(super) enum Results<'o> {
    /// Divided by their sums.
    Normalised {
        /// Bytes of `[tokens, query_heads · value_head_dim]`.
        out: OutputRows<'o, u8>,
        dtype: DType,
        /// Bytes from a head to the next.
        head_stride: usize,
        /// `[tokens, query_heads]`
        log_sum_exp: Option<OutputRows<'o, f32>>,
    },
    /// As they are.
    State {
        /// `[tokens, query_heads]`
        max: OutputRows<'o, f32>,
        /// `[tokens, query_heads]`
        sum: OutputRows<'o, f32>,
        /// `[tokens, query_heads · value_head_dim]`
        values: OutputRows<'o, f32>,
        /// Elements of `values` from a head to the next.
        head_stride: usize,
    },
}

/// Writes what a task's states have become.
pub(super) struct Finish<'a, 'o> {
    pub(super) rows: TaskRows,
    pub(super) v_dim: usize,
    pub(super) states: &'a mut [Line],
    /// `[query_heads]`
    pub(super) sinks: Option<&'a [f32]>,
    pub(super) to: Results<'o>,
}

impl Kernel for Finish<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { rows, v_dim, states, sinks, mut to } = self;
        for (tile, lines) in rows.tiles(states, v_dim) {
            let state = State::new(tile.len(), v_dim, lines);
            for row in tile.clone() {
                let ((token, head), of_tile) = (rows.place(row), row - tile.start);
                match &mut to {
                    Results::Normalised { out, dtype, head_stride, log_sum_exp } => {
                        let out = out.segment(token, head * *head_stride, v_dim * dtype.size());
                        let sink = sinks.map(|sinks| sinks[head]);
                        let log = with_float!(*dtype, Float => {
                            let out: &mut [Float] = bytemuck::cast_slice_mut(out);
                            state.finish(isa, of_tile, sink, out)
                        });
                        if let Some(to) = log_sum_exp {
                            to.segment(token, head, 1)[0] = log;
                        }
                    }
                    Results::State { max, sum, values, head_stride } => {
                        let (m, l, o) = state.row(of_tile);
                        max.segment(token, head, 1)[0] = m;
                        sum.segment(token, head, 1)[0] = l;
                        values.segment(token, head * *head_stride, v_dim).copy_from_slice(&o[..v_dim]);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_cut_into_tiles_of_12() {
        for (rows, expected) in [
            (0, &[][..]),
            (1, &[1]),
            (11, &[11]),
            (12, &[12]),
            (13, &[12, 1]),
            (24, &[12, 12]),
            (25, &[12, 12, 1]),
        ] {
            assert_eq!(tiles(rows).map(|tile| tile.len()).collect::<Vec<_>>(), expected, "{rows} rows");
        }
        assert_eq!(tiles(192).count(), 16, "of a whole task");
    }
}
