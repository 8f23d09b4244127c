//! Rows of experts to tokens: each token adds up its own rows, in ascending slot.

use crate::{
    cost,
    device::Cpu,
    simd::{Isa, Kernel, LANES, StoredFloat},
    view::{Reader, Rows, read, with_float, write},
};
use half::{bf16, f16};
use halite_hal::{Element, Result, Tensor};
use halite_kernels::{
    linear::{Activations, Quantized},
    moe::CombineArgs,
};

pub(super) fn combine(cpu: &Cpu, args: &CombineArgs<'_, Cpu>) -> Result<()> {
    with_float!(args.out.dtype(), Out => match &args.rows {
        Activations::Float(rows) => {
            with_float!(rows.dtype(), Float => combine_rows::<Float, Out>(cpu, args, rows, None))
        }
        Activations::Quantized(Quantized { q, scales, .. }) => {
            let scales = read::<f32>(scales)?;
            combine_rows::<i8, Out>(cpu, args, q, Some(scales.data()))
        }
        other => Err(crate::unsupported("combine", "this form of rows", other)),
    })
}

fn combine_rows<R: ExpertRow, T: StoredFloat + Element>(
    cpu: &Cpu,
    args: &CombineArgs<'_, Cpu>,
    rows: &Tensor<Cpu>,
    scales: Option<&[f32]>,
) -> Result<()> {
    let (rows, places) = (read::<R>(rows)?, read::<i32>(args.places)?);
    let weights = args.weights.map(read::<f32>).transpose()?;
    let added = args.added.iter().map(|added| read::<T>(added)).collect::<Result<Vec<_>>>()?;
    let mut out = write::<T>(args.out)?;
    let layout = out.rows;
    let work = cost::combined(places.rows.columns + added.len(), layout.columns);
    let sums = Sums {
        rows: (rows.data(), rows.rows),
        scales,
        places: (places.data(), places.rows),
        weights: weights.as_ref().map(|weights| (weights.data(), weights.rows)),
        added: &added,
    };
    cpu.each_rows(&mut out, work, |first, _, out| {
        for (row, out) in out.chunks_mut(layout.outer_stride).enumerate() {
            let out = &mut out[..layout.columns];
            cpu.tier().run(Combine { sums: &sums, token: first + row, out });
        }
    });
    Ok(())
}

/// What every token's sum is made of.
struct Sums<'a, R, T> {
    rows: (&'a [R], Rows),
    /// One a row, of INT8 rows.
    scales: Option<&'a [f32]>,
    places: (&'a [i32], Rows),
    weights: Option<(&'a [f32], Rows)>,
    added: &'a [Reader<'a, T>],
}

struct Combine<'a, R, T> {
    sums: &'a Sums<'a, R, T>,
    token: usize,
    out: &'a mut [T],
}

impl<R: ExpertRow, T: StoredFloat + Element> Kernel for Combine<'_, R, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { sums, token, out } = self;
        let (rows, layout) = sums.rows;
        let places = sums.places.1.row(sums.places.0, token);
        for (vector, out) in out.chunks_mut(LANES).enumerate() {
            let columns = vector * LANES..vector * LANES + out.len();
            let mut sum = isa.splat(0.0);
            for (slot, &place) in places.iter().enumerate() {
                let Ok(place) = usize::try_from(place) else { continue };
                if place >= layout.outer {
                    continue;
                }
                let mut row = R::load_row(isa, &layout.row(rows, place)[columns.clone()]);
                if let Some(scales) = sums.scales {
                    row = isa.mul(row, isa.splat(scales[place]));
                }
                if let Some((weights, layout)) = sums.weights {
                    row = isa.mul(row, isa.splat(layout.row(weights, token)[slot]));
                }
                sum = isa.add(sum, row);
            }
            for added in sums.added {
                let row = added.rows.row(added.data(), token);
                sum = isa.add(sum, T::load_partial(isa, &row[columns.clone()]));
            }
            T::store_partial(isa, sum, out);
        }
    }
}

/// Elements of experts' rows.
trait ExpertRow: Element {
    /// Reads up to 16 values; zero in the other lanes.
    fn load_row<I: Isa>(isa: I, from: &[Self]) -> I::F32;
}

macro_rules! float_rows {
    ($($type:ty),*) => {$(
        impl ExpertRow for $type {
            #[inline(always)]
            fn load_row<I: Isa>(isa: I, from: &[Self]) -> I::F32 {
                <$type as StoredFloat>::load_partial(isa, from)
            }
        }
    )*};
}

float_rows!(f32, f16, bf16);

impl ExpertRow for i8 {
    #[inline(always)]
    fn load_row<I: Isa>(isa: I, from: &[Self]) -> I::F32 {
        isa.to_f32(isa.load_i8_partial(from))
    }
}
