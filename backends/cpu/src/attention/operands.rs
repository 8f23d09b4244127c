//! Where a tile reads keys and values: a [`Part`] in scratch memory, or, for few query rows, the cache itself.
//!
//! A vector has the same values from both, so a row has the same bits. To stage a part is a copy through the second-level
//! cache; many rows share its cost, the few of a decode step would wait for it longer than for memory.

use super::{
    choice::Products,
    stage::{CHUNK, KvBlocks, Part, PartShape},
    stored::StoredKv,
};
use crate::simd::{Isa, LANES};

/// The most query rows, tokens times heads of a group, that read the cache in place. Slots of a last vector that lie past
/// the sequence's end are read there, and count for nothing.
pub(super) const IN_PLACE_ROWS: usize = 8;

/// Keys and values of a part, by groups of 16 positions.
pub(crate) trait Operands: Copy {
    /// The keys of a group.
    type Keys<I: Isa>: Copy;
    /// The values of a group.
    type Values<I: Isa>: Copy;

    /// The part's sizes.
    fn shape(&self) -> &PartShape;

    /// The part, where it lies in scratch.
    fn staged(&self) -> Option<&Part<'_>>;

    /// The keys of a group of the part.
    fn keys<I: Isa>(&self, isa: I, group: usize) -> Self::Keys<I>;

    /// Element `d` of a group's 16 keys.
    ///
    /// # Safety
    /// `d` is below the head dim.
    unsafe fn key<I: Isa>(isa: I, keys: Self::Keys<I>, d: usize) -> I::F32;

    /// The values of a group of the part.
    fn values<I: Isa>(&self, isa: I, group: usize) -> Self::Values<I>;

    /// 32 columns of the value of position `lane` of the group.
    ///
    /// # Safety
    /// `lane` is below 16, and `chunk` below the number of chunks.
    unsafe fn value<I: Isa>(isa: I, values: Self::Values<I>, lane: usize, chunk: usize) -> [I::F32; 2];
}

impl Operands for &Part<'_> {
    type Keys<I: Isa> = *const f32;
    /// Where the group's first position is, and how far it is to the next chunk.
    type Values<I: Isa> = (*const f32, usize);

    #[inline(always)]
    fn shape(&self) -> &PartShape {
        Part::shape(self)
    }

    #[inline(always)]
    fn staged(&self) -> Option<&Part<'_>> {
        Some(self)
    }

    #[inline(always)]
    fn keys<I: Isa>(&self, _isa: I, group: usize) -> *const f32 {
        let len = Part::shape(self).head_dim() * LANES;
        Part::keys(self)[group * len..][..len].as_ptr()
    }

    #[inline(always)]
    unsafe fn key<I: Isa>(isa: I, keys: *const f32, d: usize) -> I::F32 {
        // SAFETY: a group has `head_dim` vectors: the slice in `keys`.
        isa.load(unsafe { &*keys.add(d * LANES).cast() })
    }

    #[inline(always)]
    fn values<I: Isa>(&self, _isa: I, group: usize) -> (*const f32, usize) {
        let len = Part::shape(self).positions() * CHUNK;
        let last = (Part::shape(self).chunks() - 1) * len + group * LANES * CHUNK;
        assert!(last + LANES * CHUNK <= Part::values(self).len(), "group {group} of a part");
        (Part::values(self)[group * LANES * CHUNK..].as_ptr(), len)
    }

    #[inline(always)]
    unsafe fn value<I: Isa>(
        isa: I,
        (first, len): (*const f32, usize),
        lane: usize,
        chunk: usize,
    ) -> [I::F32; 2] {
        // SAFETY: the caller's promise, and the assertion in `values`.
        let v = unsafe {
            let at = first.add(chunk * len + lane * CHUNK);
            [&*at.cast(), &*at.add(LANES).cast()]
        };
        [isa.load(v[0]), isa.load(v[1])]
    }
}

/// A part where the cache has it, in blocks of whole groups.
#[derive(Clone, Copy)]
pub(super) struct InPlace<B> {
    blocks: B,
    block_size: usize,
    shape: PartShape,
    /// The sequence's position that the part begins with.
    start: usize,
    /// The position after the last one that is read of the sequence.
    end: usize,
}

impl<B: KvBlocks> InPlace<B> {
    /// Whether blocks are whole groups, values whole chunks, and products of floats.
    pub(super) fn fits(block_size: usize, shape: &PartShape) -> bool {
        let whole = block_size > 0 && block_size.is_multiple_of(LANES) && shape.v_dim().is_multiple_of(CHUNK);
        whole && shape.products() == Products::Floats
    }

    /// The part from `start` on, of a sequence that is read up to `end`.
    ///
    /// # Panics
    /// Where it does not [fit](Self::fits).
    pub(super) fn new(blocks: B, block_size: usize, shape: PartShape, start: usize, end: usize) -> Self {
        assert!(Self::fits(block_size, &shape), "blocks of {block_size} of {shape:?}");
        Self { blocks, block_size, shape, start, end }
    }

    /// The block of a position, and its slot there.
    #[inline(always)]
    fn place(&self, position: usize) -> (usize, usize) {
        (position / self.block_size, position % self.block_size)
    }
}

/// A group's keys in a block.
pub(super) struct BlockKeys<I: Isa, T: StoredKv> {
    first: *const T,
    /// Elements from a dimension to the next.
    stride: usize,
    scales: T::Scale<I>,
    /// The values of the group, which are fetched meanwhile.
    values: *const T,
}

impl<I: Isa, T: StoredKv> Clone for BlockKeys<I, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<I: Isa, T: StoredKv> Copy for BlockKeys<I, T> {}

/// A group's values in a block. The keys of the next part are fetched meanwhile.
#[derive(Clone, Copy)]
pub(super) struct BlockValues<'a, T> {
    first: *const T,
    /// Elements from a position to the next.
    v_dim: usize,
    /// Of each position; empty where the type has none.
    scales: &'a [f32],
    /// The keys of the next part's group, and elements from a dimension to the next.
    next: *const T,
    stride: usize,
}

impl<'b, B: KvBlocks + Copy + 'b> Operands for &'b InPlace<B> {
    type Keys<I: Isa> = BlockKeys<I, B::Element>;
    type Values<I: Isa> = BlockValues<'b, B::Element>;

    #[inline(always)]
    fn shape(&self) -> &PartShape {
        &self.shape
    }

    #[inline(always)]
    fn staged(&self) -> Option<&Part<'_>> {
        None
    }

    #[inline(always)]
    fn keys<I: Isa>(&self, isa: I, group: usize) -> BlockKeys<I, B::Element> {
        let (stride, position) = (self.block_size, self.start + group * LANES);
        let (block, slot) = self.place(position);
        let keys = self.blocks.keys(block);
        let last = (self.shape.head_dim() - 1) * stride + slot + LANES;
        assert!(last <= keys.elements.len(), "keys of a block");
        let values = &self.blocks.values(block).elements[slot * self.shape.v_dim()..];
        BlockKeys {
            first: keys.elements[slot..].as_ptr(),
            stride,
            scales: <B::Element as StoredKv>::slot_scales(isa, keys.scales, slot..slot + LANES),
            values: values.as_ptr(),
        }
    }

    #[inline(always)]
    unsafe fn key<I: Isa>(isa: I, keys: BlockKeys<I, B::Element>, d: usize) -> I::F32 {
        // 16 values are as many elements as 16 keys, where both have as many dimensions; else some are not fetched.
        isa.prefetch(keys.values.wrapping_add(d * LANES).cast());
        // SAFETY: the caller's promise, and the assertion in `keys`.
        let key = unsafe { &*keys.first.add(d * keys.stride).cast() };
        <B::Element as StoredKv>::load(isa, key, keys.scales)
    }

    #[inline(always)]
    fn values<I: Isa>(&self, _isa: I, group: usize) -> BlockValues<'b, B::Element> {
        let this: &'b InPlace<B> = self;
        let (v_dim, (block, slot)) = (this.shape.v_dim(), this.place(this.start + group * LANES));
        let values = this.blocks.values(block);
        let elements = &values.elements[slot * v_dim..][..LANES * v_dim];
        let scales = if values.scales.is_empty() { &[] } else { &values.scales[slot..slot + LANES] };
        let first = elements.as_ptr();
        let position = this.start + this.shape.positions() + group * LANES;
        let (next, stride) = if position < this.end {
            let (block, slot) = this.place(position);
            (this.blocks.keys(block).elements[slot..].as_ptr(), this.block_size)
        } else {
            // After the last part, a line that is there.
            (first, 0)
        };
        BlockValues { first, v_dim, scales, next, stride }
    }

    #[inline(always)]
    unsafe fn value<I: Isa>(
        isa: I,
        values: BlockValues<'b, B::Element>,
        lane: usize,
        chunk: usize,
    ) -> [I::F32; 2] {
        // As many dimensions of keys as there are vectors here; where values are shorter, some are not fetched.
        let d = 2 * (lane * (values.v_dim / CHUNK) + chunk);
        isa.prefetch(values.next.wrapping_add(d * values.stride).cast());
        if size_of::<B::Element>() * LANES > 32 {
            isa.prefetch(values.next.wrapping_add((d + 1) * values.stride).cast());
        }
        let scale = <B::Element as StoredKv>::slot_scale(isa, values.scales, lane);
        // SAFETY: the caller's promise: the slice in `values` has 16 rows of whole chunks.
        let v = unsafe {
            let at = values.first.add(lane * values.v_dim + chunk * CHUNK);
            [&*at.cast(), &*at.add(LANES).cast()]
        };
        [<B::Element as StoredKv>::load(isa, v[0], scale), <B::Element as StoredKv>::load(isa, v[1], scale)]
    }
}
