//! A paged sequence of the tests, and attention over it by parts and tiles.

use std::ops::Range;

use super::{
    operands::InPlace,
    stage::{KvBlocks, Part, PartShape, Stage, Stored},
    state::{Line, State},
    tile::{PartTile, SCORE_LINES},
};
use crate::simd::{Isa, Kernel, LANES, Tier, random::Random};

/// Keys and values of one head, `[kv_len][head_dim]` and `[kv_len][v_dim]`.
#[derive(Clone)]
pub(crate) struct Sequence {
    pub(crate) kv_len: usize,
    pub(crate) head_dim: usize,
    pub(crate) v_dim: usize,
    pub(crate) keys: Vec<f32>,
    pub(crate) values: Vec<f32>,
    /// Bounds the scores over it.
    pub(crate) soft_cap: Option<f32>,
}

impl Sequence {
    pub(crate) fn random(kv_len: usize, head_dim: usize, v_dim: usize, random: &mut Random) -> Self {
        let (keys, values) = (random.floats(kv_len * head_dim), random.floats(kv_len * v_dim));
        Self { kv_len, head_dim, v_dim, keys, values, soft_cap: None }
    }

    /// The cache in the kernels' layout; slots without a position hold NaN.
    pub(crate) fn paged(&self, block_size: usize) -> Paged {
        let blocks = self.kv_len.div_ceil(block_size);
        let mut keys = vec![f32::NAN; blocks * block_size * self.head_dim];
        let mut values = vec![f32::NAN; blocks * block_size * self.v_dim];
        for position in 0..self.kv_len {
            let (block, slot) = (position / block_size, position % block_size);
            for d in 0..self.head_dim {
                keys[(block * self.head_dim + d) * block_size + slot] =
                    self.keys[position * self.head_dim + d];
            }
            values[(block * block_size + slot) * self.v_dim..][..self.v_dim]
                .copy_from_slice(&self.values[position * self.v_dim..][..self.v_dim]);
        }
        Paged { keys, values, key_len: block_size * self.head_dim, value_len: block_size * self.v_dim }
    }

    /// One row in `f64`: two passes over the positions.
    pub(crate) fn exact(&self, row: &Row, scale: f32) -> (Vec<f64>, f64) {
        let dot = |position: usize| -> f64 {
            let key = &self.keys[position * self.head_dim..][..self.head_dim];
            let product: f64 = row.query.iter().zip(key).map(|(&q, &k)| f64::from(q) * f64::from(k)).sum();
            let score = product * f64::from(scale);
            self.soft_cap.map_or(score, |cap| f64::from(cap) * (score / f64::from(cap)).tanh())
        };
        let max = row.visible.clone().map(dot).fold(f64::NEG_INFINITY, f64::max);
        let (mut sum, mut out) = (0.0, vec![0.0; self.v_dim]);
        for position in row.visible.clone() {
            let p = (dot(position) - max).exp();
            sum += p;
            for (o, &v) in out.iter_mut().zip(&self.values[position * self.v_dim..]) {
                *o += p * f64::from(v);
            }
        }
        if sum > 0.0 {
            out.iter_mut().for_each(|o| *o /= sum);
        }
        (out, max + sum.ln())
    }
}

pub(crate) struct Paged {
    keys: Vec<f32>,
    values: Vec<f32>,
    key_len: usize,
    value_len: usize,
}

impl KvBlocks for &Paged {
    type Element = f32;
    fn keys(&self, block: usize) -> Stored<'_, f32> {
        Stored { elements: &self.keys[block * self.key_len..][..self.key_len], scales: &[] }
    }
    fn values(&self, block: usize) -> Stored<'_, f32> {
        Stored { elements: &self.values[block * self.value_len..][..self.value_len], scales: &[] }
    }
}

/// A query and the positions of the sequence that it sees.
#[derive(Clone)]
pub(crate) struct Row {
    pub(crate) query: Vec<f32>,
    pub(crate) visible: Range<usize>,
}

/// How the work is cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    pub(crate) tile_rows: usize,
    pub(crate) positions: usize,
    pub(crate) block_size: usize,
    /// Each part into a state of its own and merged afterwards, as when several threads share a row.
    pub(crate) apart: bool,
    /// Read where the blocks lie, for tiles of few rows.
    pub(crate) in_place: bool,
}

struct Finish<'a, 's>(&'a State<'s>, usize, &'a mut [f32]);

impl Kernel for Finish<'_, '_> {
    type Output = f32;
    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> f32 {
        self.0.finish(isa, self.1, None, self.2)
    }
}

/// Merges the states of a later part, computed by themselves, into those before it.
struct Merge<'a, 's>(&'a mut State<'s>, &'a State<'s>);

impl Kernel for Merge<'_, '_> {
    type Output = ();
    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self(state, part) = self;
        let factors = state.merge_sums(isa, part.m, part.l);
        for row in 0..part.rows() {
            let (o, stride) = state.outputs();
            let (o, _) = o[row * stride..][..stride].as_chunks_mut::<LANES>();
            let (part, _) = part.row(row).2.as_chunks::<LANES>();
            for (o, part) in o.iter_mut().zip(part) {
                factors.merge(isa, row, isa.load(part), o);
            }
        }
    }
}

/// Outputs and log-sum-exp of every row.
pub(crate) fn attend(tier: Tier, s: &Sequence, rows: &[Row], scale: f32, cut: Cut) -> Vec<(Vec<f32>, f32)> {
    let shape = PartShape::new(s.head_dim, s.v_dim, cut.positions);
    let poison = |lines: usize| {
        let mut lines = vec![Line::default(); lines];
        bytemuck::cast_slice_mut::<Line, f32>(&mut lines).fill(f32::NAN);
        lines
    };
    let (mut part_lines, mut scores) = (poison(shape.part_lines()), poison(SCORE_LINES));
    let paged = s.paged(cut.block_size);
    let mut results = Vec::new();
    for tile in rows.chunks(cut.tile_rows) {
        let queries: Vec<f32> = tile.iter().flat_map(|row| row.query.iter().copied()).collect();
        let (mut lines, mut other_lines) =
            (poison(State::lines(tile.len(), s.v_dim)), poison(State::lines(tile.len(), s.v_dim)));
        let mut state = State::new(tile.len(), s.v_dim, &mut lines);
        let mut other = State::new(tile.len(), s.v_dim, &mut other_lines);
        state.clear();
        for start in (0..s.kv_len).step_by(cut.positions) {
            let len = cut.positions.min(s.kv_len - start);
            let mut part = Part::new(shape, &mut part_lines);
            let first = tile.iter().map(|row| row.visible.start.saturating_sub(start)).min().unwrap_or(0);
            let (from, block_size) = (first.min(len) / LANES * LANES, cut.block_size);
            tier.run(Stage { part: &mut part, start, from, len, block_size, blocks: &paged });
            let visible: Vec<Range<usize>> = tile
                .iter()
                .map(|row| {
                    let clip = |at: usize| at.saturating_sub(start).min(len);
                    clip(row.visible.start)..clip(row.visible.end)
                })
                .collect();
            let mut run = |state: &mut State<'_>| {
                let tile = PartTile {
                    part: shape,
                    queries: &queries,
                    scale,
                    soft_cap: s.soft_cap,
                    alibi: None,
                    visible: &visible,
                    gaps: None,
                    scores: &mut scores,
                    state,
                };
                if cut.in_place {
                    let part = InPlace::new(&paged, cut.block_size, shape, start, s.kv_len);
                    tier.run(tile.over(&part));
                } else {
                    tier.run(tile.over(&part));
                }
            };
            if cut.apart {
                other.clear();
                run(&mut other);
                tier.run(Merge(&mut state, &other));
            } else {
                run(&mut state);
            }
        }
        for row in 0..tile.len() {
            let mut out = vec![f32::NAN; s.v_dim];
            let log_sum_exp = tier.run(Finish(&state, row, &mut out));
            results.push((out, log_sum_exp));
        }
    }
    results
}
