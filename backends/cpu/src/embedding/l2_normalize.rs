//! Rows of length 1.

use crate::{
    cost,
    device::Cpu,
    row::{Row, StoredRow, sum_of},
    simd::{Isa, Kernel, LANES, StoredFloat},
    view::{Rows, read, write},
};
use halite_hal::{Element, Result};
use halite_kernels::{
    Support,
    embedding::{L2NormalizeArgs, L2NormalizeSpec},
};

pub(super) fn supports(spec: &L2NormalizeSpec) -> Support {
    crate::float_only(spec.dtype)
}

pub(super) fn rows<T: StoredFloat + Element>(device: &Cpu, args: &L2NormalizeArgs<'_, Cpu>) -> Result<()> {
    let (x, mut out) = (read::<T>(args.x)?, write::<T>(args.out)?);
    let (rows, layout, x, eps) = (x.rows, out.rows, x.data(), args.spec.eps);
    device.each_rows(&mut out, cost::normalized(1, layout.columns), |first, count, out| {
        device.tier().run(Normalize { x, rows, first, count, eps, out, layout });
    });
    Ok(())
}

/// Rows `first..first + count`.
struct Normalize<'a, T> {
    x: &'a [T],
    rows: Rows,
    first: usize,
    count: usize,
    eps: f32,
    out: &'a mut [T],
    layout: Rows,
}

impl<T: StoredFloat> Kernel for Normalize<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        for row in 0..self.count {
            let x = StoredRow(self.rows.row(self.x, self.first + row));
            let mut greatest = isa.splat(0.0);
            for start in (0..x.len()).step_by(LANES) {
                greatest = isa.max(isa.abs(x.at(isa, start)), greatest);
            }
            // A power of two: it changes no digit. Up to 2^40, and of all of F32 times 2^-80, 2^31 squares add up within
            // F32; and those that 2^-80 makes subnormal are of elements that do not count beside one above 2^40.
            let shrink = if isa.max_lane(greatest) > 2f32.powi(40) { 2f32.powi(-80) } else { 1.0 };
            let length = sum_of(isa, &Squares { x, shrink }).sqrt();
            // A NaN length comes second in a comparison that it fails, and stays.
            let least = self.eps * shrink;
            let inverse = isa.splat(1.0 / if length < least { least } else { length });
            let out = &mut self.out[row * self.layout.outer_stride..][..self.layout.columns];
            for (vector, out) in out.chunks_mut(LANES).enumerate() {
                // `shrink` last: before it, small elements would lose digits that the result has.
                let y = isa.mul(isa.mul(x.at(isa, vector * LANES), inverse), isa.splat(shrink));
                T::store_partial(isa, y, out);
            }
        }
    }
}

struct Squares<'a, T> {
    x: StoredRow<'a, T>,
    shrink: f32,
}

impl<T: StoredFloat> Row for Squares<'_, T> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.x.len()
    }

    #[inline(always)]
    fn at<I: Isa>(&self, isa: I, start: usize) -> I::F32 {
        let x = isa.mul(self.x.at(isa, start), isa.splat(self.shrink));
        isa.mul(x, x)
    }
}
