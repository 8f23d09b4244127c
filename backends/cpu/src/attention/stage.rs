//! Widens one part of a sequence's keys and values into scratch memory, in the order in which the tile reads them.
//!
//! The cache keeps blocks of any size, in `f32`, BF16, F16 or scaled INT8. Staging is what keeps the tile free of all that: it
//! happens once a (sequence, KV head, part), for all query rows that see the part. Slots past the sequence's last
//! position are never read, nor are groups of positions before the first that a row sees.

use super::state::Line;
use super::{choice::Products, int8, stored::StoredKv};
use crate::simd::{Isa, Kernel, LANES, StoredFloat};
use halite_kernels::attention::AttentionCompute;
use std::ops::Range;

/// The longest part.
pub(crate) const MAX_PART: usize = 512;

/// Value columns that lie together in scratch: two vectors.
pub(crate) const CHUNK: usize = 2 * LANES;

/// One KV head of one sequence's cache.
pub(crate) trait KvBlocks {
    /// How the cache stores its values.
    type Element: StoredKv;
    /// Keys of the sequence's n-th block, `[head_dim][block_size]`, and their scales, `[block_size]`.
    fn keys(&self, block: usize) -> Stored<'_, Self::Element>;
    /// Values of the sequence's n-th block, `[block_size][v_dim]`, and their scales, `[block_size]`.
    fn values(&self, block: usize) -> Stored<'_, Self::Element>;
}

/// One head's keys or values in one block.
#[derive(Clone, Copy)]
pub(crate) struct Stored<'a, T> {
    pub(crate) elements: &'a [T],
    /// One a slot; empty where the type has none.
    pub(crate) scales: &'a [f32],
}

/// Sizes of a part in scratch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartShape {
    head_dim: usize,
    v_dim: usize,
    positions: usize,
    products: Products,
}

impl PartShape {
    /// `head_dim` and `v_dim` are 1 or more.
    ///
    /// # Panics
    /// Where `positions`, the part's length, is not a multiple of 16 from 16 to [`MAX_PART`].
    pub(crate) fn new(head_dim: usize, v_dim: usize, positions: usize) -> Self {
        assert!(head_dim > 0 && v_dim > 0, "head dims {head_dim} and {v_dim}");
        assert!(
            positions > 0 && positions <= MAX_PART && positions.is_multiple_of(LANES),
            "parts of {positions} positions"
        );
        Self { head_dim, v_dim, positions, products: Products::Floats }
    }

    /// For another arithmetic, one that the backend supports.
    pub(crate) fn with_compute(self, compute: AttentionCompute) -> Self {
        Self { products: Products::of(compute), ..self }
    }

    /// The arithmetic that the part is laid out for.
    pub(super) fn products(&self) -> Products {
        self.products
    }

    /// Elements from a query to the next in scratch.
    pub(crate) fn query_stride(&self) -> usize {
        match self.products {
            Products::Floats => self.head_dim,
            Products::Int8Scores | Products::Int8 => int8::query_stride(self.head_dim),
        }
    }

    /// Whether values are weighted as bytes.
    pub(crate) fn int8_values(&self) -> bool {
        self.products == Products::Int8
    }

    /// Elements of a query or key.
    pub(crate) fn head_dim(&self) -> usize {
        self.head_dim
    }

    /// Elements of a value.
    pub(crate) fn v_dim(&self) -> usize {
        self.v_dim
    }

    /// The part's length: the KV of a sequence is cut at multiples of it.
    pub(crate) fn positions(&self) -> usize {
        self.positions
    }

    /// Value columns in chunks of 32.
    pub(crate) fn chunks(&self) -> usize {
        self.v_dim.div_ceil(CHUNK)
    }

    /// Lines for the keys. The tile reads groups of 16 positions in pairs, so there is an even number of groups.
    fn key_lines(&self) -> usize {
        let groups = (self.positions / LANES).next_multiple_of(2);
        match self.products {
            Products::Floats => groups.saturating_mul(self.head_dim),
            Products::Int8Scores | Products::Int8 => {
                groups.saturating_mul(self.head_dim.div_ceil(4)).saturating_add(self.scale_lines())
            }
        }
    }

    fn value_lines(&self) -> usize {
        if self.int8_values() {
            let lines = self.chunks().saturating_mul(self.positions / 4 * (CHUNK / LANES));
            return lines.saturating_add(self.scale_lines());
        }
        self.chunks().saturating_mul(self.positions * (CHUNK / LANES))
    }

    /// Lines for a scale a position.
    fn scale_lines(&self) -> usize {
        self.positions / LANES
    }

    /// Lines of scratch that a [`Part`] takes; saturated for head dims that no memory holds.
    pub(crate) fn part_lines(&self) -> usize {
        self.key_lines().saturating_add(self.value_lines())
    }
}

/// One part in scratch memory.
#[derive(Debug)]
pub(crate) struct Part<'a> {
    shape: PartShape,
    /// `[positions / 16][head_dim][16]`, zero past the last position of the last group.
    keys: &'a mut [f32],
    /// `[v_dim / 32][positions][32]`, zero past `v_dim`.
    values: &'a mut [f32],
}

impl<'a> Part<'a> {
    /// Takes [`PartShape::part_lines`] from the front of `scratch`.
    ///
    /// # Panics
    /// Where there are fewer.
    pub(crate) fn new(shape: PartShape, scratch: &'a mut [Line]) -> Self {
        let (keys, values) = scratch[..shape.part_lines()].split_at_mut(shape.key_lines());
        Self { shape, keys: bytemuck::cast_slice_mut(keys), values: bytemuck::cast_slice_mut(values) }
    }

    /// The sizes.
    pub(crate) fn shape(&self) -> &PartShape {
        &self.shape
    }

    /// `[positions / 16][head_dim][16]`, with an even number of groups.
    pub(crate) fn keys(&self) -> &[f32] {
        self.keys
    }

    /// `[v_dim / 32][positions][32]`
    pub(crate) fn values(&self) -> &[f32] {
        self.values
    }

    /// Makes keys zero in the lanes that a part of `len` positions leaves of its last group.
    #[inline(always)]
    pub(crate) fn clear_tail(&mut self, len: usize) {
        let (group, lane) = (len / LANES, len % LANES);
        if lane > 0 {
            let size = self.shape.head_dim * LANES;
            self.keys[group * size..][..size].chunks_exact_mut(LANES).for_each(|d| d[lane..].fill(0.0));
        }
    }

    /// Puts elements of the key of the position `at`, from `first` on.
    #[inline(always)]
    pub(crate) fn put_key<T: StoredFloat>(&mut self, at: usize, first: usize, elements: &[T]) {
        let group = (at / LANES) * self.shape.head_dim;
        let (to, _) = self.keys[(group + first) * LANES..][..elements.len() * LANES].as_chunks_mut::<LANES>();
        for (to, element) in to.iter_mut().zip(elements) {
            to[at % LANES] = element.widen();
        }
    }

    /// Chunk `chunk` of the value of the position `at`: 32 columns, zero or unread past `v_dim`.
    #[inline(always)]
    pub(crate) fn value_chunk(&mut self, at: usize, chunk: usize) -> &mut [f32] {
        &mut self.values[(chunk * self.shape.positions + at) * CHUNK..][..CHUNK]
    }

    /// Bytes and scales of keys, of a part that is laid out for them: see [`int8`].
    pub(super) fn int8_keys(&self) -> (&[u8], &[f32]) {
        let (bytes, scales) = self.keys.split_at(self.keys.len() - self.shape.positions);
        (bytemuck::cast_slice(bytes), scales)
    }

    /// As [`Part::int8_keys`].
    pub(super) fn int8_keys_mut(&mut self) -> (&mut [u8], &mut [f32]) {
        let (bytes, scales) = self.keys.split_at_mut(self.keys.len() - self.shape.positions);
        (bytemuck::cast_slice_mut(bytes), scales)
    }

    /// Bytes and scales of values, of a part that is laid out for them: see [`int8`].
    pub(super) fn int8_values(&self) -> (&[u8], &[f32]) {
        let (bytes, scales) = self.values.split_at(self.values.len() - self.shape.positions);
        (bytemuck::cast_slice(bytes), scales)
    }

    /// As [`Part::int8_values`].
    pub(super) fn int8_values_mut(&mut self) -> (&mut [u8], &mut [f32]) {
        let (bytes, scales) = self.values.split_at_mut(self.values.len() - self.shape.positions);
        (bytemuck::cast_slice_mut(bytes), scales)
    }
}

/// Fills a part with the positions from `start` on: `len` of them, at most the part's length.
pub(crate) struct Stage<'a, 'p, B> {
    /// Where the part goes.
    pub(crate) part: &'a mut Part<'p>,
    /// The first position, a multiple of the part's length.
    pub(crate) start: usize,
    /// Positions at the part's beginning that are left out, since no row sees them: a multiple of 16.
    pub(crate) from: usize,
    /// Positions that the sequence has in this part.
    pub(crate) len: usize,
    /// The cache's positions a block.
    pub(crate) block_size: usize,
    /// The cache.
    pub(crate) blocks: B,
}

impl<B: KvBlocks> Kernel for Stage<'_, '_, B> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { part, start, from, len, block_size, blocks } = self;
        assert!(len <= part.shape.positions && from.is_multiple_of(LANES) && block_size > 0);
        for (block, run) in runs(start, from..len, block_size) {
            stage_keys(isa, part, blocks.keys(block), run);
            stage_values(isa, part, blocks.values(block), run);
        }
    }
}

/// Positions that lie together in one block.
#[derive(Clone, Copy)]
pub(super) struct Run {
    /// First position within the part.
    pub(super) at: usize,
    /// First slot within the block.
    pub(super) slot: usize,
    pub(super) len: usize,
    pub(super) block_size: usize,
}

/// The runs of some positions of the part at `start`, each with which of the sequence's blocks it lies in.
pub(super) fn runs(
    start: usize,
    positions: Range<usize>,
    block_size: usize,
) -> impl Iterator<Item = (usize, Run)> {
    let mut at = positions.start;
    std::iter::from_fn(move || {
        if at >= positions.end {
            return None;
        }
        let (block, slot) = ((start + at) / block_size, (start + at) % block_size);
        let run = Run { at, slot, len: (block_size - slot).min(positions.end - at), block_size };
        at += run.len;
        Some((block, run))
    })
}

/// How some positions get into the lanes of a group of 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fill {
    /// The whole vector, so that lanes which no later run writes are zero; all 16 are there, or those missing read as zero.
    FromTheFirst,
    /// These lanes only, as a partial vector.
    Within,
    /// Blocks of a few positions: a partial vector costs more than its elements.
    OneByOne,
}

impl Fill {
    /// For `len` positions, 1 to 16, from `lane` on.
    #[inline(always)]
    const fn of(lane: usize, len: usize) -> Self {
        match (lane, len) {
            (0, _) => Fill::FromTheFirst,
            (_, 0..4) => Fill::OneByOne,
            _ => Fill::Within,
        }
    }
}

#[inline(always)]
fn stage_keys<I: Isa, T: StoredKv>(isa: I, part: &mut Part<'_>, block: Stored<'_, T>, run: Run) {
    let head_dim = part.shape.head_dim;
    let rows = block.elements[..head_dim * run.block_size].chunks_exact(run.block_size);
    let mut done = 0;
    while done < run.len {
        let (group, lane) = ((run.at + done) / LANES, (run.at + done) % LANES);
        let len = (LANES - lane).min(run.len - done);
        let slots = run.slot + done..run.slot + done + len;
        let scales = T::slot_scales(isa, block.scales, slots.clone());
        let (to, _) = part.keys[group * head_dim * LANES..][..head_dim * LANES].as_chunks_mut::<LANES>();
        let fill = Fill::of(lane, len);
        for (to, from) in to.iter_mut().zip(rows.clone()) {
            let from = &from[slots.clone()];
            match (fill, from.first_chunk()) {
                (Fill::OneByOne, _) => {
                    for (i, (to, &x)) in to[lane..].iter_mut().zip(from).enumerate() {
                        *to = x.widen(block.scales, slots.start + i);
                    }
                }
                (_, Some(from)) => isa.store(T::load(isa, from, scales), to),
                (Fill::FromTheFirst, None) => isa.store(T::load_partial(isa, from, scales), to),
                (Fill::Within, None) => {
                    isa.store_partial(T::load_partial(isa, from, scales), &mut to[lane..lane + len]);
                }
            }
        }
        done += len;
    }
}

#[inline(always)]
pub(super) fn stage_values<I: Isa, T: StoredKv>(isa: I, part: &mut Part<'_>, block: Stored<'_, T>, run: Run) {
    let PartShape { v_dim, positions, .. } = part.shape;
    let rows = block.elements[run.slot * v_dim..][..run.len * v_dim].chunks_exact(v_dim);
    for ((position, slot), row) in (run.at..).zip(run.slot..).zip(rows) {
        let scale = T::slot_scale(isa, block.scales, slot);
        for (chunk, columns) in row.chunks(CHUNK).enumerate() {
            let to = &mut part.values[(chunk * positions + position) * CHUNK..][..CHUNK];
            let (to, _) = to.as_chunks_mut::<LANES>();
            if let (Some(first), Some(second)) = (columns.first_chunk(), columns.last_chunk())
                && columns.len() == CHUNK
            {
                isa.store(T::load(isa, first, scale), &mut to[0]);
                isa.store(T::load(isa, second, scale), &mut to[1]);
            } else {
                let (first, second) = columns.split_at(columns.len().min(LANES));
                isa.store(T::load_partial(isa, first, scale), &mut to[0]);
                isa.store(T::load_partial(isa, second, scale), &mut to[1]);
            }
        }
    }
}

/// Widens one query row, `[head_dim]`, to where the tile reads it.
#[inline(always)]
pub(crate) fn stage_query<I: Isa, T: StoredFloat>(isa: I, from: &[T], to: &mut [f32]) {
    assert_eq!(from.len(), to.len(), "elements of a query");
    for (from, to) in from.chunks(LANES).zip(to.chunks_mut(LANES)) {
        isa.store_partial(T::load_partial(isa, from), to);
    }
}

#[cfg(test)]
#[path = "stage_tests.rs"]
mod tests;
