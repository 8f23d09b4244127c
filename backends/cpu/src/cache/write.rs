//! Writing keys and values by slot.

use super::{CpuKvCache, Kind};
use crate::{
    device::Cpu,
    quantize::{quantize_lanes, row_scale},
    row::StoredRow,
    simd::{Isa, Kernel, LANES},
    view::{Rows, read},
};
use halite_hal::{Element, Result, Tensor};
use halite_kernels::cache::CacheWriteArgs;

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

/// Rounds to nearest even. Where there are several `rows`, a token's are written one after the other.
pub(super) fn float<T: Element + Narrow>(
    cache: &CpuKvCache,
    layer: usize,
    kind: Kind,
    slots: &[i64],
    rows: &[&Tensor<Cpu>],
) -> Result<()> {
    let (memory, bytes) = cache.elements(kind, layer);
    let mut memory = memory.write(bytes)?;
    let memory: &mut [T] = bytemuck::cast_slice_mut(&mut memory);
    let (elements, mut first) = (cache.block_elements(kind), 0);
    let step = if cache.positions_innermost(kind) { cache.spec.block_size } else { 1 };
    for rows in rows {
        let rows = read::<f32>(rows)?;
        for Target { token, head, block, slot } in targets(cache, slots) {
            let row = &rows.data()[rows.rows.start(token, head)..][..rows.rows.columns];
            let to =
                memory[block * elements + cache.place(kind, head, slot, first)..].iter_mut().step_by(step);
            to.zip(row).for_each(|(to, &from)| *to = T::narrow(from));
        }
        first += rows.rows.columns;
    }
    Ok(())
}

/// Quantises each row, and writes its scale beside it.
pub(super) fn int8(
    device: &Cpu,
    args: &CacheWriteArgs<'_, Cpu>,
    kind: Kind,
    rows: &Tensor<Cpu>,
) -> Result<()> {
    let cache = args.cache;
    let x = read::<f32>(rows)?;
    let ((q, q_bytes), (scales, scale_bytes)) =
        (cache.elements(kind, args.layer), cache.scales(kind, args.layer));
    let (mut q, mut scales) = (q.write(q_bytes)?, scales.write(scale_bytes)?);
    device.tier().run(Quantized {
        cache,
        kind,
        slots: &args.slots.slots,
        x: x.data(),
        rows: x.rows,
        q: bytemuck::cast_slice_mut(&mut q),
        scales: bytemuck::cast_slice_mut(&mut scales),
    });
    Ok(())
}

/// Rows to INT8 in their slots.
struct Quantized<'a> {
    cache: &'a CpuKvCache,
    kind: Kind,
    slots: &'a [i64],
    x: &'a [f32],
    rows: Rows,
    /// One layer's elements.
    q: &'a mut [i8],
    /// One layer's scales.
    scales: &'a mut [f32],
}

impl Kernel for Quantized<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let (cache, kind) = (self.cache, self.kind);
        let (elements, scales) = (cache.block_elements(kind), cache.block_scales());
        let stride = if cache.positions_innermost(kind) { cache.spec.block_size } else { 1 };
        for Target { token, head, block, slot } in targets(cache, self.slots) {
            let x = StoredRow(&self.x[self.rows.start(token, head)..][..self.rows.columns]);
            let scale = row_scale(isa, &x);
            self.scales[block * scales + cache.scale_place(head, slot)] = scale;
            let mut to =
                self.q[block * elements + cache.place(kind, head, slot, 0)..].iter_mut().step_by(stride);
            for start in (0..x.0.len()).step_by(LANES) {
                let mut lanes = [0; LANES];
                let lanes = &mut lanes[..(x.0.len() - start).min(LANES)];
                quantize_lanes(isa, &x, start, scale, lanes);
                // The row's own iterator second: it must not lose an element when the lanes are over.
                lanes.iter().zip(to.by_ref()).for_each(|(&from, to)| *to = from);
            }
        }
    }
}

/// Rounding of one F32.
pub(super) trait Narrow {
    fn narrow(value: f32) -> Self;
}

impl Narrow for f32 {
    fn narrow(value: f32) -> Self {
        value
    }
}

impl Narrow for half::f16 {
    fn narrow(value: f32) -> Self {
        half::f16::from_f32(value)
    }
}

impl Narrow for half::bf16 {
    fn narrow(value: f32) -> Self {
        half::bf16::from_f32(value)
    }
}
