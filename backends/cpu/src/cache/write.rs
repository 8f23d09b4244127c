//! Writing keys and values by slot.

use super::{CpuKvCache, CpuSlots, Kind};
use crate::{
    device::Cpu,
    quantize::{quantize_lanes, row_scale},
    row::{Row, StoredRow},
    simd::{Isa, Kernel, LANES, StoredFloat},
    view::{Rows, read, with_float},
};
use halite_hal::{Result, Tensor};
use halite_kernels::cache::KvFormat;

/// Where a row of `rows` goes: its token and head, its block, and its slot there.
struct Target {
    token: usize,
    head: usize,
    block: usize,
    slot: usize,
}

/// Every head of every token that is not skipped.
fn targets(cache: &CpuKvCache, slots: &[i64]) -> impl Iterator<Item = Target> {
    let (heads, block_size) = (cache.spec.kv_heads, cache.spec.block_size);
    let written =
        slots.iter().enumerate().filter_map(|(token, &slot)| Some((token, usize::try_from(slot).ok()?)));
    written.flat_map(move |(token, slot)| {
        (0..heads).map(move |head| Target { token, head, block: slot / block_size, slot: slot % block_size })
    })
}

/// A row of keys or values a token and head.
pub(crate) trait HeadRows {
    type Row: Row;

    /// The row. Implementations are `#[inline(always)]`.
    fn row(&self, token: usize, head: usize) -> Self::Row;
}

/// Rows in memory.
struct StoredHeads<'a> {
    data: &'a [f32],
    rows: Rows,
}

impl<'a> HeadRows for StoredHeads<'a> {
    type Row = StoredRow<'a, f32>;

    #[inline(always)]
    fn row(&self, token: usize, head: usize) -> Self::Row {
        StoredRow(&self.data[self.rows.start(token, head)..][..self.rows.columns])
    }
}

/// Writes the rows of tensors. Where there are several, a token's lie one after the other; such rows are floats.
pub(crate) fn stored(device: &Cpu, place: &Place<'_>, kind: Kind, parts: &[&Tensor<Cpu>]) -> Result<()> {
    let mut first = 0;
    // A part of no elements has no rows: a latent cache without a rotated key.
    for rows in parts.iter().filter(|rows| rows.shape().elements() > 0) {
        let rows = read::<f32>(rows)?;
        write(device, place, kind, first, &StoredHeads { data: rows.data(), rows: rows.rows })?;
        first += rows.rows.columns;
    }
    Ok(())
}

/// One layer of a cache and the slots that tokens go to.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) cache: &'a CpuKvCache,
    pub(crate) layer: usize,
    pub(crate) slots: &'a CpuSlots,
}

/// Writes rows in the cache's format, floats from element `first` of the cache's rows on; INT8 rows are written whole,
/// since they have one scale.
pub(crate) fn write(
    device: &Cpu,
    place: &Place<'_>,
    kind: Kind,
    first: usize,
    rows: &impl HeadRows,
) -> Result<()> {
    let &Place { cache, layer, slots: CpuSlots { slots, .. } } = place;
    let (memory, bytes) = cache.elements(kind, layer);
    let mut memory = memory.write(bytes)?;
    match cache.spec.format {
        KvFormat::Int8PerTokenHead => {
            let (scales, bytes) = cache.scales(kind, layer);
            let mut scales = scales.write(bytes)?;
            let (q, scales) = (bytemuck::cast_slice_mut(&mut memory), bytemuck::cast_slice_mut(&mut scales));
            device.tier().run(Quantized { cache, kind, slots, rows, q, scales });
        }
        other => with_float!(other.element(), Float => {
            let memory: &mut [Float] = bytemuck::cast_slice_mut(&mut memory);
            device.tier().run(Rounded { cache, kind, slots, first, rows, memory });
        }),
    }
    Ok(())
}

/// Elements from one element of a row to the next.
fn stride(cache: &CpuKvCache, kind: Kind) -> usize {
    if cache.positions_innermost(kind) { cache.spec.block_size } else { 1 }
}

/// Rows to floats in their slots, rounded to nearest even.
struct Rounded<'a, R, T> {
    cache: &'a CpuKvCache,
    kind: Kind,
    slots: &'a [i64],
    /// Where in the cache's rows these begin.
    first: usize,
    rows: &'a R,
    /// One layer's elements.
    memory: &'a mut [T],
}

impl<R: HeadRows, T: StoredFloat> Kernel for Rounded<'_, R, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let (cache, kind) = (self.cache, self.kind);
        let elements = cache.block_elements(kind);
        for Target { token, head, block, slot } in targets(cache, self.slots) {
            let x = self.rows.row(token, head);
            let to = &mut self.memory[block * elements + cache.place(kind, head, slot, self.first)..];
            let mut to = to.iter_mut().step_by(stride(cache, kind));
            for start in (0..x.len()).step_by(LANES) {
                let mut lanes = [T::ZERO; LANES];
                let lanes = &mut lanes[..(x.len() - start).min(LANES)];
                T::store_partial(isa, x.at(isa, start), lanes);
                // The row's own iterator second: it must not lose an element when the lanes are over.
                lanes.iter().zip(to.by_ref()).for_each(|(&from, to)| *to = from);
            }
        }
    }
}

/// Rows to INT8 in their slots, each with its scale beside it.
struct Quantized<'a, R> {
    cache: &'a CpuKvCache,
    kind: Kind,
    slots: &'a [i64],
    rows: &'a R,
    /// One layer's elements.
    q: &'a mut [i8],
    /// One layer's scales.
    scales: &'a mut [f32],
}

impl<R: HeadRows> Kernel for Quantized<'_, R> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let (cache, kind) = (self.cache, self.kind);
        let (elements, scales) = (cache.block_elements(kind), cache.block_scales());
        for Target { token, head, block, slot } in targets(cache, self.slots) {
            let x = self.rows.row(token, head);
            let scale = row_scale(isa, &x);
            self.scales[block * scales + cache.scale_place(head, slot)] = scale;
            let to = &mut self.q[block * elements + cache.place(kind, head, slot, 0)..];
            let mut to = to.iter_mut().step_by(stride(cache, kind));
            for start in (0..x.len()).step_by(LANES) {
                let mut lanes = [0; LANES];
                let lanes = &mut lanes[..(x.len() - start).min(LANES)];
                quantize_lanes(isa, &x, start, scale, lanes);
                lanes.iter().zip(to.by_ref()).for_each(|(&from, to)| *to = from);
            }
        }
    }
}
