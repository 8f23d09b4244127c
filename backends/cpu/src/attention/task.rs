//! One task: a KV head of a sequence, and some of its query rows.

use super::{
    alibi::Alibi,
    ends::{Finish, Queries, Results, StageQueries, TaskRows, begin},
    operands::IN_PLACE_ROWS,
    plan::Task,
    source::{Piece, Source, Staged, pieces},
    stage::{Part, PartShape},
    state::{Line, MAX_ROWS, State},
    tile::{Gaps, PartTile, SCORE_LINES},
    visible::{PartLanes, Visible},
};
use crate::{
    simd::{Isa, Kernel},
    view::Reader,
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
    pub(super) q: Queries<'a>,
    /// `[max, sum, values]` of an earlier call.
    pub(super) state_in: Option<&'a [Reader<'a, f32>; 3]>,
    /// `[query_heads]`
    pub(super) sinks: Option<&'a [f32]>,
    pub(super) results: Results<'o>,
    /// [`TaskShape::lines`] of scratch memory.
    pub(super) lines: &'a mut [Line],
}

impl<S: Source> Kernel for Attend<'_, '_, S> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(mut self, isa: I) {
        let (shape, rows, v_dim) = (self.shape, self.rows(), self.shape.part.v_dim());
        let (part_lines, rest) = std::mem::take(&mut self.lines).split_at_mut(shape.part.part_lines());
        let (staging, rest) = rest.split_at_mut(shape.staging);
        let (scores, rest) = rest.split_at_mut(SCORE_LINES);
        let (queries, states) = rest.split_at_mut(shape.query_lines());
        let queries: &mut [f32] = bytemuck::cast_slice_mut(queries);

        let stride = shape.part.query_stride();
        isa.call(StageQueries { rows, shape: shape.part, from: self.q, to: &mut *queries });
        begin(rows, v_dim, self.state_in, states);

        let last = self.task.tokens.len().saturating_sub(1);
        // From the first token's first position to the last token's last.
        let seen = self.visible.range(0).start..self.visible.range(last).end;
        let end = seen.end;
        let in_place = rows.count() <= IN_PLACE_ROWS && self.source.reads_in_place(&shape.part);
        for piece @ Piece { start, len, .. } in pieces(seen, shape.part.positions()) {
            let mut part = Part::new(shape.part, part_lines);
            let staged = Staged { table: self.table, kv_head: self.task.kv_head, piece, end };
            if !in_place {
                self.source.stage(isa, staged, &mut part, &mut *staging);
            }
            for (tile, state) in rows.tiles(states, v_dim) {
                let visible: [Range<usize>; MAX_ROWS] = std::array::from_fn(|row| {
                    let visible = self.visible.range(rows.token(tile.start + row));
                    visible.start.saturating_sub(start)..visible.end.saturating_sub(start).min(len)
                });
                let alibi = self.alibi(tile.start, start);
                let mut lanes: [PartLanes; MAX_ROWS] = Default::default();
                let gaps = self.gaps(tile.clone(), start..start + len, &mut lanes);
                let tile_rows = PartTile {
                    part: shape.part,
                    queries: &queries[tile.start * stride..tile.end * stride],
                    scale: self.spec.scale,
                    soft_cap: self.spec.soft_cap,
                    alibi: alibi.as_ref().map(|alibi| &alibi[..tile.len()]),
                    visible: &visible[..tile.len()],
                    gaps,
                    scores: &mut *scores,
                    state: &mut State::new(tile.len(), v_dim, state),
                };
                if in_place {
                    self.source.run_in_place(isa, staged, tile_rows);
                } else {
                    tile_rows.over(&part).run_tile(isa);
                }
            }
        }

        isa.call(Finish { rows, v_dim, states, sinks: self.sinks, to: self.results });
    }
}

impl<S: Source> Attend<'_, '_, S> {
    fn rows(&self) -> TaskRows {
        let Task { kv_head, tokens, .. } = self.task;
        TaskRows { first: tokens.start, tokens: tokens.len(), kv_head: *kv_head, group: self.spec.group() }
    }

    /// The biases of the rows from `first` on, for a part that begins at `start`.
    fn alibi(&self, first: usize, start: usize) -> Option<[Alibi; MAX_ROWS]> {
        let (slopes, rows) = (self.spec.alibi_slopes.as_deref()?, self.rows());
        Some(std::array::from_fn(|row| Alibi {
            slope: slopes[rows.query_head(first + row)],
            own: self.visible.position(rows.token(first + row)) - start as i64,
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
        let (lanes, rows) = (&mut lanes[..tile.len()], self.rows());
        for (row, lanes) in tile.zip(lanes.iter_mut()) {
            *lanes = self.visible.lanes(rows.token(row), part.start);
        }
        let from = (self.visible.step_first - part.start as i64).max(0) as usize;
        Some(Gaps { from, lanes })
    }
}
