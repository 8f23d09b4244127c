//! One task: a KV head of a sequence, and some of its query rows.

use super::{
    Task,
    stage::{KvBlocks, Part, PartShape, Stage, stage_query},
    state::{Line, MAX_ROWS, State},
    tile::{PartTile, SCORE_LINES},
};
use crate::{
    cache::CpuKvCache,
    linear::output::OutputRows,
    simd::{Isa, Kernel, LANES, StoredFloat},
    view::Rows,
};
use halite_kernels::{
    attention::{AttentionSpec, Mask},
    cache::KvCacheInfo,
};
use std::ops::Range;

/// Sizes of a task's scratch memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskShape {
    part: PartShape,
    /// Query rows at most.
    rows: usize,
}

impl TaskShape {
    /// For up to `tokens` query tokens. The spec is one that the backend supports.
    pub(super) fn new(spec: &AttentionSpec, tokens: usize) -> Self {
        let part = PartShape::new(spec.kv.head_dim, spec.kv.value_head_dim, spec.kv_split);
        TaskShape { part, rows: tokens.saturating_mul(spec.group()) }
    }

    /// Lines of scratch memory; saturated, as are all sizes here, where they overflow.
    pub(super) fn lines(&self) -> usize {
        let states = self.tiles().saturating_mul(self.state_lines());
        [SCORE_LINES, self.query_lines(), states]
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
        self.rows.saturating_mul(self.part.head_dim()).div_ceil(size_of::<Line>() / size_of::<f32>())
    }
}

/// One layer of the cache.
pub(super) struct Layer<'a, T> {
    pub(super) cache: &'a CpuKvCache,
    pub(super) keys: &'a [T],
    pub(super) values: &'a [T],
}

/// One head of one sequence in a layer.
struct SequenceBlocks<'a, T> {
    layer: &'a Layer<'a, T>,
    /// Block ids, checked against the cache.
    table: &'a [i32],
    kv_head: usize,
}

impl<T> SequenceBlocks<'_, T> {
    /// A head's elements in the sequence's n-th block; `block` elements a block, `head` a head.
    #[inline(always)]
    fn head<'m>(&self, memory: &'m [T], n: usize, block: usize) -> &'m [T] {
        let head = block / self.layer.cache.spec().kv_heads;
        &memory[self.table[n] as usize * block + self.kv_head * head..][..head]
    }
}

impl<T: StoredFloat> KvBlocks for SequenceBlocks<'_, T> {
    type Element = T;

    #[inline(always)]
    fn keys(&self, block: usize) -> &[T] {
        self.head(self.layer.keys, block, self.layer.cache.key_block())
    }

    #[inline(always)]
    fn values(&self, block: usize) -> &[T] {
        self.head(self.layer.values, block, self.layer.cache.value_block())
    }
}

/// What of a part is staged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    /// The part's first position.
    start: usize,
    /// Positions left out at its beginning: whole vectors.
    from: usize,
    /// Positions of the part, those left out included.
    len: usize,
}

/// The parts, of `positions` each, in which some row sees something. The others would leave every state as it is, so
/// leaving them out changes no bit.
fn pieces(seen: Range<usize>, positions: usize) -> impl Iterator<Item = Piece> {
    (seen.start / positions * positions..seen.end).step_by(positions).map(move |start| Piece {
        start,
        from: seen.start.saturating_sub(start) / LANES * LANES,
        len: positions.min(seen.end - start),
    })
}

/// Runs a task.
pub(super) struct Attend<'a, 'o, T> {
    pub(super) spec: &'a AttentionSpec,
    pub(super) shape: TaskShape,
    pub(super) task: &'a Task,
    /// The sequence's row of the block table.
    pub(super) table: &'a [i32],
    pub(super) layer: &'a Layer<'a, T>,
    pub(super) q: &'a [f32],
    pub(super) q_rows: Rows,
    /// `[tokens, query_heads · value_head_dim]`
    pub(super) out: OutputRows<'o, f32>,
    /// Elements of `out` from a head to the next.
    pub(super) head_stride: usize,
    /// `[tokens, query_heads]`
    pub(super) log_sum_exp: Option<OutputRows<'o, f32>>,
    /// [`TaskShape::lines`] of scratch memory.
    pub(super) lines: &'a mut [Line],
}

impl<T: StoredFloat> Kernel for Attend<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(mut self, isa: I) {
        let (shape, group) = (self.shape, self.spec.group());
        let rows = self.task.tokens.len() * group;
        let head_dim = self.spec.kv.head_dim;
        let (part_lines, rest) = std::mem::take(&mut self.lines).split_at_mut(shape.part.part_lines());
        let (scores, rest) = rest.split_at_mut(SCORE_LINES);
        let (queries, states) = rest.split_at_mut(shape.query_lines());
        let queries: &mut [f32] = bytemuck::cast_slice_mut(queries);

        for (row, to) in queries.chunks_mut(head_dim).enumerate().take(rows) {
            let start = self.q_rows.start(self.task.tokens.start + row / group, self.query_head(row));
            stage_query(isa, &self.q[start..start + head_dim], to);
        }
        for (tile, lines) in self.tiles(states) {
            State::new(tile.len(), shape.part.v_dim(), lines).clear();
        }

        // From the first row's first position to the last row's last.
        let seen = self.visible(0).start..self.visible(rows.saturating_sub(1)).end;
        for Piece { start, from, len } in pieces(seen, shape.part.positions()) {
            let mut part = Part::new(shape.part, part_lines);
            let blocks = SequenceBlocks { layer: self.layer, table: self.table, kv_head: self.task.kv_head };
            let block_size = self.spec.kv.block_size;
            isa.call(Stage { part: &mut part, start, from, len, block_size, blocks });
            for (tile, lines) in self.tiles(states) {
                let visible: [Range<usize>; MAX_ROWS] = std::array::from_fn(|row| {
                    let visible = self.visible(tile.start + row);
                    visible.start.saturating_sub(start)..visible.end.saturating_sub(start).min(len)
                });
                let tile_rows = PartTile {
                    part: &part,
                    queries: &queries[tile.start * head_dim..tile.end * head_dim],
                    scale: self.spec.scale,
                    soft_cap: self.spec.soft_cap,
                    visible: &visible[..tile.len()],
                    scores: &mut *scores,
                    state: &mut State::new(tile.len(), shape.part.v_dim(), lines),
                };
                tile_rows.run_tile(isa);
            }
        }

        self.finish(isa, states);
    }
}

impl<T: StoredFloat> Attend<'_, '_, T> {
    /// The query head of a row: rows are tokens, then the heads that share the KV head.
    fn query_head(&self, row: usize) -> usize {
        let group = self.spec.group();
        self.task.kv_head * group + row % group
    }

    /// Positions that a row sees. Neither end decreases from a row to the next.
    fn visible(&self, row: usize) -> Range<usize> {
        let end = self.task.first_visible + (row / self.spec.group()) as i64;
        let end = usize::try_from(end).unwrap_or(0);
        match self.spec.mask {
            Mask::Sliding { window } => end.saturating_sub(window)..end,
            // The backend plans for no mask that it does not know.
            _ => 0..end,
        }
    }

    /// The rows of each tile, and the lines of its state.
    fn tiles<'l>(
        &self,
        states: &'l mut [Line],
    ) -> impl Iterator<Item = (Range<usize>, &'l mut [Line])> + use<'l, T> {
        let rows = self.task.tokens.len() * self.spec.group();
        let lines = states.chunks_mut(self.shape.state_lines());
        (0..rows).step_by(MAX_ROWS).map(move |start| start..rows.min(start + MAX_ROWS)).zip(lines)
    }

    #[inline(always)]
    fn finish<I: Isa>(&mut self, isa: I, states: &mut [Line]) {
        let (group, v_dim) = (self.spec.group(), self.shape.part.v_dim());
        for (tile, lines) in self.tiles(states) {
            let state = State::new(tile.len(), v_dim, lines);
            for row in tile.clone() {
                let (token, head) = (self.task.tokens.start + row / group, self.query_head(row));
                let out = self.out.segment(token, head * self.head_stride, v_dim);
                let log_sum_exp = state.finish(isa, row - tile.start, out);
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
    fn pieces_are_what_a_window_needs_and_no_more() {
        let piece = |start, from, len| Piece { start, from, len };
        for (seen, expected) in [
            (0..0, vec![]),
            (0..1, vec![piece(0, 0, 1)]),
            (0..65, vec![piece(0, 0, 64), piece(64, 0, 1)]),
            (63..64, vec![piece(0, 48, 64)]),
            (64..65, vec![piece(64, 0, 1)]),
            (79..130, vec![piece(64, 0, 64), piece(128, 0, 2)]),
            (80..130, vec![piece(64, 16, 64), piece(128, 0, 2)]),
        ] {
            assert_eq!(pieces(seen.clone(), 64).collect::<Vec<_>>(), expected, "{seen:?}");
        }
        // However long the sequence, a row with a window stages the window and less than a vector beside it.
        for end in 100_000..100_600 {
            let staged: usize = pieces(end - 512..end, 256).map(|piece| piece.len - piece.from).sum();
            assert!((512..512 + LANES).contains(&staged), "{staged} positions up to {end}");
        }
    }
}
