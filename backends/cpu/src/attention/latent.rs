//! Parts of a cache that keeps values as the first elements of its keys: a token's row holds both.

use super::{
    source::{Piece, Source, Staged},
    stage::{CHUNK, Part},
    state::Line,
};
use crate::{
    cache::CpuKvCache,
    simd::{Isa, Kernel, LANES, StoredFloat},
};
use halite_kernels::cache::KvCacheInfo;

/// One layer of it, `[blocks, kv_heads, block_size, head_dim]`.
#[derive(Clone, Copy)]
pub(crate) struct LatentLayer<'a, T> {
    cache: &'a CpuKvCache,
    rows: &'a [T],
}

impl<'a, T> LatentLayer<'a, T> {
    /// `rows` is what the cache has of the layer.
    pub(crate) fn new(cache: &'a CpuKvCache, rows: &'a [T]) -> Self {
        Self { cache, rows }
    }

    /// The row of a position of a sequence, `table` being its row of the block table.
    #[inline(always)]
    pub(crate) fn row(&self, table: &[i32], head: usize, position: usize) -> &'a [T] {
        let spec = self.cache.spec();
        let (block, slot) = (position / spec.block_size, position % spec.block_size);
        let row = (table[block] as usize * spec.kv_heads + head) * spec.block_size + slot;
        &self.rows[row * spec.head_dim..][..spec.head_dim]
    }
}

impl<T: StoredFloat> Source for LatentLayer<'_, T> {
    #[inline(always)]
    fn stage<I: Isa>(&self, isa: I, staged: Staged<'_>, part: &mut Part<'_>, _scratch: &mut [Line]) {
        isa.call(StageRows { layer: self, staged, part });
    }
}

/// Widens a part's rows, once as keys and once as values.
struct StageRows<'a, 'p, T> {
    layer: &'a LatentLayer<'a, T>,
    staged: Staged<'a>,
    part: &'a mut Part<'p>,
}

impl<T: StoredFloat> Kernel for StageRows<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { layer, staged, part } = self;
        let Piece { start, from, len } = staged.piece;
        let v_dim = part.shape().v_dim();
        part.clear_tail(len);
        for at in from..len {
            let row = layer.row(staged.table, staged.kv_head, start + at);
            part.put_key(at, 0, row);
            for (chunk, columns) in row[..v_dim].chunks(CHUNK).enumerate() {
                let (to, _) = part.value_chunk(at, chunk).as_chunks_mut::<LANES>();
                let (first, second) = columns.split_at(columns.len().min(LANES));
                isa.store(T::load_partial(isa, first), &mut to[0]);
                isa.store(T::load_partial(isa, second), &mut to[1]);
            }
        }
    }
}
