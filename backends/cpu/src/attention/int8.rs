//! Attention in INT8: scores, and where it is asked for weighted values, as exact sums in i32.
//!
//! The formula is `halite_kernels::attention::AttentionCompute`'s. A part in scratch holds the cache's bytes in the order
//! of the dot product, four to a lane, and their scales after them:
//!
//! ```text
//! keys    [positions / 16][head_dim / 4][16][4]        + 128, unsigned     scales [positions]
//! values  [v_dim / 32][positions / 4][2][16][4]        signed              scales [positions]
//! ```
//!
//! The instruction multiplies unsigned by signed: keys are unsigned, and the accumulator starts with -128 times the sum
//! of the query; weights are unsigned as they are. What lies in a part where no position or element is, is multiplied
//! with zero, or its score is never looked at.

use std::ops::Range;

use super::{
    stage::{CHUNK, KvBlocks, MAX_PART, Part, Run, runs, stage_values},
    tile::{STRIDE, Seen},
};
use crate::{
    quantize::quantize_row,
    row::StoredRow,
    simd::{Isa, Kernel, LANES, StoredFloat, first_lanes},
};

/// Bytes of four elements, or positions, of 16 lanes: one line.
const QUAD: usize = 4 * LANES;

/// Elements of a query in scratch after its quads: its scale, and what its accumulators start with.
const QUERY_TAIL: usize = 2;

/// Elements, as `f32`, from a query to the next.
pub(super) fn query_stride(head_dim: usize) -> usize {
    head_dim.div_ceil(4).saturating_add(QUERY_TAIL)
}

/// Fills a part as [`Stage`](super::stage::Stage) does, with bytes where the part's arithmetic wants them.
pub(super) struct StageInt8<'a, 'p, B> {
    pub(super) part: &'a mut Part<'p>,
    pub(super) start: usize,
    pub(super) from: usize,
    pub(super) len: usize,
    pub(super) block_size: usize,
    pub(super) blocks: B,
}

impl<B: KvBlocks<Element = i8>> Kernel for StageInt8<'_, '_, B> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { part, start, from, len, block_size, blocks } = self;
        assert!(len <= part.shape().positions() && from.is_multiple_of(LANES) && block_size > 0);
        for (block, run) in runs(start, from..len, block_size) {
            let (keys, values) = (blocks.keys(block), blocks.values(block));
            let (_, scales) = part.int8_keys_mut();
            scales[run.at..][..run.len].copy_from_slice(&keys.scales[run.slot..][..run.len]);
            stage_key_bytes(isa, part, keys.elements, run);
            if part.shape().int8_values() {
                let (_, scales) = part.int8_values_mut();
                scales[run.at..][..run.len].copy_from_slice(&values.scales[run.slot..][..run.len]);
                stage_value_bytes(isa, part, values.elements, run);
            } else {
                stage_values(isa, part, values, run);
            }
        }
    }
}

/// `block` is `[head_dim][block_size]`.
#[inline(always)]
fn stage_key_bytes<I: Isa>(isa: I, part: &mut Part<'_>, block: &[i8], run: Run) {
    let head_dim = part.shape().head_dim();
    let quads = head_dim.div_ceil(4);
    let (bytes, _) = part.int8_keys_mut();
    let row = |d: usize, at: usize| &block[d * run.block_size + run.slot + at - run.at..];
    let end = run.at + run.len;
    let mut at = run.at;
    while at < end {
        let (group, lane) = (at / LANES, at % LANES);
        let len = (LANES - lane).min(end - at);
        let lines = &mut bytes.as_chunks_mut::<QUAD>().0[group * quads..][..quads];
        for (quad, line) in lines.iter_mut().enumerate() {
            let rows = head_dim.min(4 * quad + 4) - 4 * quad;
            if len == LANES && rows == 4 {
                let rows: [&[i8]; 4] = std::array::from_fn(|i| &row(4 * quad + i, at)[..LANES]);
                // As unsigned bytes.
                interleave(isa, rows, 128, line);
            } else {
                for i in 0..rows {
                    for (lane, &key) in (lane..lane + len).zip(row(4 * quad + i, at)) {
                        line[4 * lane + i] = key as u8 ^ 0x80;
                    }
                }
            }
        }
        at += len;
    }
}

/// `block` is `[block_size][v_dim]`.
#[inline(always)]
fn stage_value_bytes<I: Isa>(isa: I, part: &mut Part<'_>, block: &[i8], run: Run) {
    let (v_dim, positions) = (part.shape().v_dim(), part.shape().positions());
    let (bytes, _) = part.int8_values_mut();
    let row = |at: usize| &block[(run.slot + at - run.at) * v_dim..][..v_dim];
    let end = run.at + run.len;
    let mut at = run.at;
    while at < end {
        let (quad, first) = (at / 4, at % 4);
        let len = (4 - first).min(end - at);
        for column in (0..v_dim).step_by(LANES) {
            let line = (column / CHUNK * (positions / 4) + quad) * 2 + column % CHUNK / LANES;
            let line = &mut bytes.as_chunks_mut::<QUAD>().0[line];
            let columns = column..v_dim.min(column + LANES);
            if len == 4 && columns.len() == LANES {
                let rows: [&[i8]; 4] = std::array::from_fn(|i| &row(at + i)[columns.clone()]);
                interleave(isa, rows, 0, line);
            } else {
                for i in 0..len {
                    for (lane, &value) in row(at + i)[columns.clone()].iter().enumerate() {
                        line[4 * lane + first + i] = value as u8;
                    }
                }
            }
        }
        at += len;
    }
}

/// Four rows of 16 elements, plus `add`, as 16 quads of bytes.
#[inline(always)]
fn interleave<I: Isa>(isa: I, rows: [&[i8]; 4], add: i32, line: &mut [u8; QUAD]) {
    let (add, byte) = (isa.splat_i32(add), isa.splat_i32(0xFF));
    let [first, second, third, fourth] = rows;
    let first = isa.and(isa.add_i32(isa.load_i8_partial(first), add), byte);
    let second = isa.and(isa.add_i32(isa.load_i8_partial(second), add), byte);
    let third = isa.and(isa.add_i32(isa.load_i8_partial(third), add), byte);
    let fourth = isa.add_i32(isa.load_i8_partial(fourth), add);
    let low = isa.add_i32(first, isa.shift_left::<8>(second));
    let high = isa.add_i32(isa.shift_left::<16>(third), isa.shift_left::<24>(fourth));
    isa.store_i32(isa.add_i32(low, high), bytemuck::cast_mut(line));
}

/// Quantises one query row, `[head_dim]`, into [`query_stride`] elements of scratch.
#[inline(always)]
pub(super) fn stage_query<I: Isa, T: StoredFloat>(isa: I, from: &[T], to: &mut [f32]) {
    let (q, tail) = to.split_at_mut(to.len() - QUERY_TAIL);
    let q: &mut [i8] = bytemuck::cast_slice_mut(q);
    q[from.len()..].fill(0);
    tail[0] = quantize_row(isa, &StoredRow(from), &mut q[..from.len()]);
    let sum: i32 = q.iter().map(|&q| i32::from(q)).sum();
    tail[1] = f32::from_bits((-128 * sum).cast_unsigned());
}

/// A query in scratch.
struct Query<'a> {
    quads: &'a [[u8; 4]],
    scale: f32,
    /// -128 times the sum of its elements.
    start: i32,
}

impl<'a> Query<'a> {
    #[inline(always)]
    fn new(row: &'a [f32]) -> Self {
        let (q, tail) = row.split_at(row.len() - QUERY_TAIL);
        let (quads, _) = bytemuck::cast_slice(q).as_chunks();
        Query { quads, scale: tail[0], start: tail[1].to_bits().cast_signed() }
    }
}

/// Scores of some groups of 16 positions for all rows.
#[inline(always)]
pub(super) fn scores<I: Isa, const ROWS: usize>(
    isa: I,
    part: &Part<'_>,
    queries: &[f32],
    scale: f32,
    groups: Range<usize>,
    scores: &mut [f32],
) {
    let quads = part.shape().head_dim().div_ceil(4);
    let stride = part.shape().query_stride();
    let queries: [Query<'_>; ROWS] = std::array::from_fn(|r| Query::new(&queries[r * stride..][..stride]));
    let (keys, key_scales) = part.int8_keys();
    for group in groups {
        let keys = &keys[group * quads * QUAD..][..quads * QUAD];
        let mut acc = [isa.splat_i32(0); ROWS];
        for (acc, query) in acc.iter_mut().zip(&queries) {
            *acc = isa.splat_i32(query.start);
        }
        for (quad, keys) in keys.as_chunks::<QUAD>().0.iter().enumerate() {
            let keys = isa.load_bytes(keys);
            for (acc, query) in acc.iter_mut().zip(&queries) {
                *acc = isa.dot_u8_i8(*acc, keys, isa.splat_i32(i32::from_le_bytes(query.quads[quad])));
            }
        }
        let mut sums = [[0; LANES]; ROWS];
        for (sums, acc) in sums.iter_mut().zip(acc) {
            isa.store_i32(acc, sums);
        }
        let key_scales = isa.load_partial(&key_scales[group * LANES..][..LANES]);
        for (r, (sums, query)) in sums.iter().zip(&queries).enumerate() {
            let factor = isa.mul(key_scales, isa.splat(query.scale * scale));
            let to = &mut scores[r * STRIDE + group * LANES..][..LANES];
            isa.store_partial(isa.mul(isa.to_f32(isa.load_i32(sums)), factor), to);
        }
    }
}

/// The weights of a part's values in 8 bits, each row with its scale.
pub(super) struct Weights<const ROWS: usize> {
    bytes: [[u8; MAX_PART]; ROWS],
    scales: [f32; ROWS],
}

impl<const ROWS: usize> Weights<ROWS> {
    /// From `e^(s - m)` of what each row sees; other positions weigh nothing.
    #[inline(always)]
    pub(super) fn new<I: Isa>(isa: I, part: &Part<'_>, seen: Seen<'_>, weights: &[f32]) -> Self {
        let (_, value_scales) = part.int8_values();
        let mut new = Weights { bytes: [[0; MAX_PART]; ROWS], scales: [0.0; ROWS] };
        for (row, visible) in seen.visible.iter().enumerate() {
            if !visible.is_empty() {
                let weights = &weights[row * STRIDE..][..STRIDE];
                let scaled = Scaled { seen, row, weights, value_scales };
                let groups = visible.start / LANES..visible.end.div_ceil(LANES);
                new.scales[row] = scaled.quantize(isa, groups, &mut new.bytes[row]);
            }
        }
        new
    }

    /// The sums of 16 columns of values, the `half`th of a chunk, for all rows.
    #[inline(always)]
    pub(super) fn sums<I: Isa>(
        &self,
        isa: I,
        part: &Part<'_>,
        positions: Range<usize>,
        (chunk, half): (usize, usize),
    ) -> [[f32; LANES]; ROWS] {
        let (values, _) = part.int8_values();
        let quads = part.shape().positions() / 4;
        let lines = &values.as_chunks::<{ 2 * QUAD }>().0[chunk * quads..][..quads];
        let mut acc = [isa.splat_i32(0); ROWS];
        let seen = positions.start / 4..positions.end.div_ceil(4);
        for (quad, line) in seen.clone().zip(&lines[seen]) {
            let (halves, _) = line.as_chunks::<QUAD>();
            let values = isa.load_bytes(&halves[half]);
            for (acc, weights) in acc.iter_mut().zip(&self.bytes) {
                let weights = weights.as_chunks().0[quad];
                *acc = isa.dot_u8_i8(*acc, isa.splat_i32(i32::from_le_bytes(weights)), values);
            }
        }
        let mut sums = [[0.0; LANES]; ROWS];
        for ((sums, acc), scale) in sums.iter_mut().zip(acc).zip(self.scales) {
            isa.store(isa.mul(isa.to_f32(acc), isa.splat(scale)), sums);
        }
        sums
    }
}

/// A row's weights times the scales of their values.
struct Scaled<'a> {
    seen: Seen<'a>,
    row: usize,
    weights: &'a [f32],
    value_scales: &'a [f32],
}

impl Scaled<'_> {
    /// Those of a group of 16 positions; zero where the row sees nothing.
    #[inline(always)]
    fn at<I: Isa>(&self, isa: I, group: usize) -> I::F32 {
        let at = group * LANES;
        let weights = isa.load_partial(&self.weights[at..][..LANES]);
        let scales = isa.load_partial(&self.value_scales[at..][..LANES]);
        isa.select(self.seen.lanes(self.row, group), isa.mul(weights, scales), isa.splat(0.0))
    }

    /// Those of some groups in 8 bits; returns their scale.
    #[inline(always)]
    fn quantize<I: Isa>(&self, isa: I, groups: Range<usize>, to: &mut [u8; MAX_PART]) -> f32 {
        let mut greatest = isa.splat(0.0);
        let mut finite = true;
        for group in groups.clone() {
            let w = self.at(isa, group);
            greatest = isa.max(w, greatest);
            // False for NaN too.
            finite &= isa.less(w, isa.splat(f32::INFINITY)) == first_lanes(LANES);
        }
        if !finite {
            return f32::NAN;
        }
        let scale = (isa.max_lane(greatest) / 255.0).max(f32::MIN_POSITIVE);
        let inverse = isa.splat(1.0 / scale);
        for group in groups {
            let mut u = [0; LANES];
            isa.store_i32(isa.to_i32(isa.mul(self.at(isa, group), inverse)), &mut u);
            for (to, u) in to[group * LANES..][..LANES].iter_mut().zip(u) {
                *to = u.clamp(0, 255) as u8;
            }
        }
        scale
    }
}
