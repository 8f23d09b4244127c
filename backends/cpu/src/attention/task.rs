//! One task: a KV head of a sequence, and some of its query rows.

use super::{
    alibi::Alibi,
    choice::Products,
    int8,
    plan::Task,
    source::{Piece, Source, Staged, pieces},
    stage::{Part, PartShape, stage_query},
    state::{Line, MAX_ROWS, State},
    tile::{Gaps, PartTile, SCORE_LINES},
    visible::{PartLanes, Visible},
};
use crate::{
    linear::output::OutputRows,
    simd::{Isa, Kernel},
    view::Rows,
};
use halite_kernels::attention::AttentionSpec;
use std::ops::Range;

/// Sizes of a task's scratch memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskShape {
    part: PartShape,
    /// Query rows at most.
    rows: usize,
    /// Lines that staging a part takes beside it.
    staging: usize,
}

impl TaskShape {
    /// For up to `tokens` query tokens and a source that asks for `staging` lines. The spec is one that the backend
    /// supports.
    pub(super) fn new(spec: &AttentionSpec, tokens: usize, staging: usize) -> Self {
        let part = PartShape::new(spec.kv.head_dim, spec.kv.value_head_dim, spec.kv_split)
            .with_compute(spec.compute);
        TaskShape { part, rows: tokens.saturating_mul(spec.group()), staging }
    }

    /// Lines of scratch memory; saturated, as are all sizes here, where they overflow.
    pub(super) fn lines(&self) -> usize {
        let states = self.tiles().saturating_mul(self.state_lines());
        [self.staging, SCORE_LINES, self.query_lines(), states]
            .into_iter()
            .fold(self.part.part_lines(), usize::saturating_add)
    }

    /// Bytes of scratch memory.
    pub(super) fn bytes(&self) -> usize {
        self.lines().saturating_mul(size_of::<Line>())
    }

    fn tiles(&self) -> usize {
        self.rows.div_ceil(MAX_ROWS)
    }

    fn state_lines(&self) -> usize {
        State::lines(MAX_ROWS, self.part.v_dim())
    }

    fn query_lines(&self) -> usize {
        self.rows.saturating_mul(self.part.query_stride()).div_ceil(size_of::<Line>() / size_of::<f32>())
    }
}

/// The rows of each tile of a task: as many as a tile holds, and what is left.
fn tiles(rows: usize) -> impl Iterator<Item = Range<usize>> {
    (0..rows).step_by(MAX_ROWS).map(move |start| start..rows.min(start + MAX_ROWS))
}

/// Runs a task.
pub(super) struct Attend<'a, 'o, S> {
    pub(super) spec: &'a AttentionSpec,
    pub(super) shape: TaskShape,
    pub(super) task: &'a Task,
    /// The sequence's row of the block table.
    pub(super) table: &'a [i32],
    pub(super) visible: Visible<'a>,
    /// Its keys and values.
    pub(super) source: &'a S,
    pub(super) q: &'a [f32],
    pub(super) q_rows: Rows,
    /// `[query_heads]`
    pub(super) sinks: Option<&'a [f32]>,
    /// `[tokens, query_heads · value_head_dim]`
    pub(super) out: OutputRows<'o, f32>,
    /// Elements of `out` from a head to the next.
    pub(super) head_stride: usize,
    /// `[tokens, query_heads]`
    pub(super) log_sum_exp: Option<OutputRows<'o, f32>>,
    /// [`TaskShape::lines`] of scratch memory.
    pub(super) lines: &'a mut [Line],
}

impl<S: Source> Kernel for Attend<'_, '_, S> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(mut self, isa: I) {
        let (shape, group) = (self.shape, self.spec.group());
        let rows = self.task.tokens.len() * group;
        let head_dim = self.spec.kv.head_dim;
        let (part_lines, rest) = std::mem::take(&mut self.lines).split_at_mut(shape.part.part_lines());
        let (staging, rest) = rest.split_at_mut(shape.staging);
        let (scores, rest) = rest.split_at_mut(SCORE_LINES);
        let (queries, states) = rest.split_at_mut(shape.query_lines());
        let queries: &mut [f32] = bytemuck::cast_slice_mut(queries);

        let stride = shape.part.query_stride();
        for (row, to) in queries.chunks_mut(stride).enumerate().take(rows) {
            let start = self.q_rows.start(self.task.tokens.start + row / group, self.query_head(row));
            let q = &self.q[start..start + head_dim];
            match shape.part.products() {
                Products::Floats => stage_query(isa, q, to),
                Products::Int8Scores | Products::Int8 => int8::stage_query(isa, q, to),
            }
        }
        for (tile, lines) in self.tiles(states) {
            State::new(tile.len(), shape.part.v_dim(), lines).clear();
        }

        let last = self.task.tokens.len().saturating_sub(1);
        // From the first token's first position to the last token's last.
        let seen = self.visible.range(0).start..self.visible.range(last).end;
        for piece @ Piece { start, len, .. } in pieces(seen, shape.part.positions()) {
            let mut part = Part::new(shape.part, part_lines);
            let staged = Staged { table: self.table, kv_head: self.task.kv_head, piece };
            self.source.stage(isa, staged, &mut part, &mut *staging);
            for (tile, state) in self.tiles(states) {
                let visible: [Range<usize>; MAX_ROWS] = std::array::from_fn(|row| {
                    let visible = self.visible.range((tile.start + row) / group);
                    visible.start.saturating_sub(start)..visible.end.saturating_sub(start).min(len)
                });
                let alibi = self.alibi(tile.start, start);
                let mut lanes: [PartLanes; MAX_ROWS] = Default::default();
                let gaps = self.gaps(tile.clone(), start..start + len, &mut lanes);
                let tile_rows = PartTile {
                    part: &part,
                    queries: &queries[tile.start * stride..tile.end * stride],
                    scale: self.spec.scale,
                    soft_cap: self.spec.soft_cap,
                    alibi: alibi.as_ref().map(|alibi| &alibi[..tile.len()]),
                    visible: &visible[..tile.len()],
                    gaps,
                    scores: &mut *scores,
                    state: &mut State::new(tile.len(), shape.part.v_dim(), state),
                };
                tile_rows.run_tile(isa);
            }
        }

        self.finish(isa, states);
    }
}

impl<S: Source> Attend<'_, '_, S> {
    /// The query head of a row: rows are tokens, then the heads that share the KV head.
    fn query_head(&self, row: usize) -> usize {
        let group = self.spec.group();
        self.task.kv_head * group + row % group
    }

    /// The biases of the rows from `first` on, for a part that begins at `start`.
    fn alibi(&self, first: usize, start: usize) -> Option<[Alibi; MAX_ROWS]> {
        let slopes = self.spec.alibi_slopes.as_deref()?;
        Some(std::array::from_fn(|row| Alibi {
            slope: slopes[self.query_head(first + row)],
            own: self.visible.position((first + row) / self.spec.group()) - start as i64,
        }))
    }

    /// What the rows of a tile miss in a part; `lanes` has room for it.
    fn gaps<'l>(
        &self,
        tile: Range<usize>,
        part: Range<usize>,
        lanes: &'l mut [PartLanes; MAX_ROWS],
    ) -> Option<Gaps<'l>> {
        if !self.visible.has_gaps(part.end) {
            return None;
        }
        let lanes = &mut lanes[..tile.len()];
        for (row, lanes) in tile.zip(lanes.iter_mut()) {
            *lanes = self.visible.lanes(row / self.spec.group(), part.start);
        }
        let from = (self.visible.step_first - part.start as i64).max(0) as usize;
        Some(Gaps { from, lanes })
    }

    /// The rows of each tile, and the lines of its state.
    fn tiles<'l>(
        &self,
        states: &'l mut [Line],
    ) -> impl Iterator<Item = (Range<usize>, &'l mut [Line])> + use<'l, S> {
        let rows = self.task.tokens.len() * self.spec.group();
        let lines = states.chunks_mut(self.shape.state_lines());
        tiles(rows).zip(lines)
    }

    #[inline(always)]
    fn finish<I: Isa>(&mut self, isa: I, states: &mut [Line]) {
        let (group, v_dim) = (self.spec.group(), self.shape.part.v_dim());
        for (tile, lines) in self.tiles(states) {
            let state = State::new(tile.len(), v_dim, lines);
            for row in tile.clone() {
                let (token, head) = (self.task.tokens.start + row / group, self.query_head(row));
                let out = self.out.segment(token, head * self.head_stride, v_dim);
                let sink = self.sinks.map(|sinks| sinks[head]);
                let log_sum_exp = state.finish(isa, row - tile.start, sink, out);
                if let Some(to) = &mut self.log_sum_exp {
                    to.segment(token, head, 1)[0] = log_sum_exp;
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
