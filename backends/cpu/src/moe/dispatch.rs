//! Rows to experts: a stable counting sort, then each task copies the rows of its part of the result.

use crate::{
    cost,
    device::Cpu,
    simd::{Isa, Kernel, LANES, StoredFloat},
    view::{Reader, Rows, Writer, read, with_float, write},
};
use halite_hal::{Element, Result, Tensor};
use halite_kernels::{
    linear::{Activations, Quantized},
    moe::{DispatchArgs, LocalExperts},
};

pub(super) fn dispatch(cpu: &Cpu, args: &DispatchArgs<'_, Cpu>) -> Result<()> {
    let ids = read::<i32>(args.ids)?;
    let weights = args.weights.map(read::<f32>).transpose()?;
    let mut places = write::<i32>(args.places)?;
    let (mut offsets, layout) = (write::<i32>(args.offsets)?, places.rows);
    sort(args.local, &ids, &mut places, offsets.data());
    let moves = Moves {
        places: (&*places.data(), layout),
        weights: weights.as_ref().map(|weights| (weights.data(), weights.rows)),
    };
    match (&args.x, &args.rows) {
        (Activations::Float(x), Activations::Float(rows)) => {
            with_float!(x.dtype(), Float => moves.copy::<Float>(cpu, x, rows, |from, weight, to| {
                cpu.tier().run(Weigh { from, weight, to });
            }))
        }
        (
            Activations::Quantized(Quantized { q, scales, .. }),
            Activations::Quantized(Quantized { q: rows, scales: row_scales, .. }),
        ) => {
            let (from, mut to) = (read::<f32>(scales)?, write::<f32>(row_scales)?);
            let (from, to) = (from.data(), to.data());
            moves.each(|token, place, weight| {
                to[place] = weight.map_or(from[token], |weight| from[token] * weight);
            });
            // The weights are in the scales.
            Moves { weights: None, ..moves }.copy::<i8>(cpu, q, rows, |_, _, _| {})
        }
        (other, _) => Err(crate::unsupported("dispatch", "this form of rows", other)),
    }
}

/// Where each slot's row goes, and where each expert's rows begin. `[count + 1]` offsets.
fn sort(local: LocalExperts, ids: &Reader<'_, i32>, places: &mut Writer<'_, i32>, offsets: &mut [i32]) {
    let (rows, ids) = (ids.rows, ids.data());
    offsets.fill(0);
    for token in 0..rows.count() {
        for &id in rows.row(ids, token) {
            if let Some(expert) = local.place(id) {
                offsets[expert + 1] += 1;
            }
        }
    }
    let mut sum = 0;
    for offset in offsets.iter_mut() {
        sum += *offset;
        *offset = sum;
    }
    // Each expert's own offset is the place of its next row meanwhile, and ends as the one after it.
    let (layout, places) = (places.rows, places.data());
    for token in 0..rows.count() {
        let places = &mut places[token * layout.outer_stride..][..layout.columns];
        for (place, &id) in places.iter_mut().zip(rows.row(ids, token)) {
            *place = -1;
            if let Some(expert) = local.place(id) {
                *place = offsets[expert];
                offsets[expert] += 1;
            }
        }
    }
    let last = offsets.len() - 1;
    offsets.copy_within(0..last, 1);
    offsets[0] = 0;
}

/// Which row goes where, and what multiplies it: `[tokens, top_k]` both.
#[derive(Clone, Copy)]
struct Moves<'a> {
    places: (&'a [i32], Rows),
    weights: Option<(&'a [f32], Rows)>,
}

impl Moves<'_> {
    /// Calls `visit` with token, place and weight of each row that goes somewhere.
    fn each(&self, mut visit: impl FnMut(usize, usize, Option<f32>)) {
        let (places, layout) = self.places;
        for token in 0..layout.count() {
            for (slot, &place) in layout.row(places, token).iter().enumerate() {
                if let Ok(place) = usize::try_from(place) {
                    let weight = self.weights.map(|(weights, rows)| rows.row(weights, token)[slot]);
                    visit(token, place, weight);
                }
            }
        }
    }

    /// Copies rows; `weigh` writes those that have a weight.
    fn copy<T: Element>(
        &self,
        cpu: &Cpu,
        from: &Tensor<Cpu>,
        to: &Tensor<Cpu>,
        weigh: impl Fn(&[T], f32, &mut [T]) + Sync,
    ) -> Result<()> {
        let (from, mut to) = (read::<T>(from)?, write::<T>(to)?);
        let (rows, layout) = (from.rows, to.rows);
        if layout.columns == 0 {
            return Ok(());
        }
        let from = from.data();
        let work = cost::dispatched(layout.columns * size_of::<T>());
        let per_task = cpu.team().units_per_task(layout.outer, work);
        let tasks = to.data().chunks_mut(layout.outer_stride * per_task).enumerate();
        cpu.team().each(tasks, |(task, to)| {
            let mine = task * per_task..(task + 1) * per_task;
            self.each(|token, place, weight| {
                if mine.contains(&place) {
                    let to = &mut to[(place - mine.start) * layout.outer_stride..][..layout.columns];
                    let from = rows.row(from, token);
                    match weight {
                        Some(weight) => weigh(from, weight, to),
                        None => to.copy_from_slice(from),
                    }
                }
            });
        });
        Ok(())
    }
}

/// One row times its weight.
struct Weigh<'a, T> {
    from: &'a [T],
    weight: f32,
    to: &'a mut [T],
}

impl<T: StoredFloat> Kernel for Weigh<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let weight = isa.splat(self.weight);
        for (from, to) in self.from.chunks(LANES).zip(self.to.chunks_mut(LANES)) {
            T::store_partial(isa, isa.mul(T::load_partial(isa, from), weight), to);
        }
    }
}
