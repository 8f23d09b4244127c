//! A head's keys and values, made from latents where attention wants them.
//!
//! Each element is one chain of multiply-adds in ascending latent element, of its own position only: what else is made
//! with it changes no bit of it.

use super::packed::HeadWeights;
use crate::{
    attention::{
        latent::LatentLayer,
        source::{Source, Staged},
        stage::{CHUNK, Part},
        state::Line,
    },
    linear::{
        epilogue::{Epilogue, RowSums},
        float::{FloatProduct, FloatRows},
        pack::{PANEL, Place},
        product::{Multiply, Product},
    },
    simd::{Isa, Kernel, LANES, StoredFloat},
};
use halite_kernels::mla::MlaSpec;

/// Lines of scratch memory for a part's latents, `[kv_split, kv_lora_rank]`; saturated.
pub(super) fn latent_lines(spec: &MlaSpec) -> usize {
    spec.attention.kv_split.saturating_mul(spec.kv_lora_rank()).div_ceil(LANES)
}

/// Latents of type `L` times weights of type `W`.
#[derive(Clone, Copy)]
pub(super) struct Expand<'a, L, W> {
    pub(super) latents: LatentLayer<'a, L>,
    pub(super) w_uk: HeadWeights<'a, W>,
    pub(super) w_uv: HeadWeights<'a, W>,
}

impl<L: StoredFloat, W: StoredFloat> Source for Expand<'_, L, W> {
    #[inline(always)]
    fn stage<I: Isa>(&self, isa: I, staged: Staged<'_>, part: &mut Part<'_>, scratch: &mut [Line]) {
        isa.call(Make { source: self, staged, part, latents: bytemuck::cast_slice_mut(scratch) });
    }
}

/// Makes one head's part.
struct Make<'a, 'p, L, W> {
    source: &'a Expand<'a, L, W>,
    staged: Staged<'a>,
    part: &'a mut Part<'p>,
    /// Room for `[positions, kv_lora_rank]`.
    latents: &'a mut [f32],
}

impl<L: StoredFloat, W: StoredFloat> Kernel for Make<'_, '_, L, W> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { source, staged, part, latents } = self;
        let (piece, head) = (staged.piece, staged.kv_head);
        let (rank, nope) = source.w_uk.sizes();
        let count = piece.len.saturating_sub(piece.from);
        part.clear_tail(piece.len);
        for (at, to) in (piece.from..piece.len).zip(latents.chunks_exact_mut(rank)) {
            let row = source.latents.row(staged.table, 0, piece.start + at);
            let (latent, rope_key) = row.split_at(rank);
            for (from, to) in latent.chunks(LANES).zip(to.chunks_mut(LANES)) {
                isa.store_partial(L::load_partial(isa, from), to);
            }
            part.put_key(at, nope, rope_key);
        }
        let rows = || FloatRows::new(latents, count, rank, rank);
        let keys = FloatProduct::new(rows(), source.w_uk.head(head));
        let epilogue = Keys { part, from: piece.from };
        isa.call(Multiply { product: keys, panels: 0..keys.panels(), epilogue });
        let values = FloatProduct::new(rows(), source.w_uv.head(head));
        let epilogue = Values { part, from: piece.from };
        isa.call(Multiply { product: values, panels: 0..values.panels(), epilogue });
    }
}

/// Takes elements of keys; row `r` is position `from + r` of the part.
struct Keys<'a, 'p> {
    part: &'a mut Part<'p>,
    from: usize,
}

impl Epilogue for Keys<'_, '_> {
    type Sum = f32;

    #[inline(always)]
    fn store<I: Isa>(&mut self, _isa: I, row: usize, place: Place, sums: &RowSums<f32>) {
        self.part.put_key(self.from + row, place.column, &sums.as_flattened()[..place.valid]);
    }
}

/// Takes elements of values: a panel of them is a chunk of the part's.
struct Values<'a, 'p> {
    part: &'a mut Part<'p>,
    from: usize,
}

const _: () = assert!(PANEL == CHUNK);

impl Epilogue for Values<'_, '_> {
    type Sum = f32;

    #[inline(always)]
    fn store<I: Isa>(&mut self, isa: I, row: usize, place: Place, sums: &RowSums<f32>) {
        let to = self.part.value_chunk(self.from + row, place.column / CHUNK);
        let (to, _) = to.as_chunks_mut::<LANES>();
        // Columns beyond the last are zero: lanes without a channel have weights of zero, and zero times an infinite or
        // NaN latent is NaN, but nothing reads them.
        for (to, sums) in to.iter_mut().zip(sums) {
            isa.store(isa.load(sums), to);
        }
    }
}
