//! Rows to INT8 with a scale per token.

use crate::{
    device::Cpu,
    row::{Row, StoredRow},
    simd::{Isa, Kernel, LANES, StoredFloat, first_lanes},
    stream::CpuStream,
    view::{Rows, read, with_float, write},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    quantize::{Quantize, QuantizeArgs, QuantizeSpec},
};

impl Quantize for Cpu {
    fn quantize_supports(&self, spec: &QuantizeSpec) -> Support {
        if spec.input.is_float() {
            Support::Native
        } else {
            Support::No(format!("{}: floating-point types are built", spec.input))
        }
    }

    fn quantize(&self, _stream: &mut CpuStream, args: Checked<QuantizeArgs<'_, Self>>) -> Result<()> {
        self.quantize_supports(args.spec).require("quantize", self, args.spec)?;
        with_float!(args.spec.input, Float => {
            let x = read::<Float>(args.x)?;
            let (mut q, mut scales) = (write::<i8>(args.q)?, write::<f32>(args.scales)?);
            let (rows, out) = (x.rows, q.rows);
            let (x, q, scales) = (x.data(), q.data(), scales.data());
            if rows.columns == 0 {
                // Rows of nothing are rows of zeros, and have no chunks below.
                scales.fill(f32::MIN_POSITIVE);
                return Ok(());
            }
            let per_task = self.team().units_per_task(rows.count(), rows.columns / 4);
            let tasks = q.chunks_mut(out.outer_stride * per_task).zip(scales.chunks_mut(per_task)).enumerate();
            self.team().each(tasks, |(task, (q, scales))| {
                self.tier().run(QuantizeRows { x, rows, first: task * per_task, q, out, scales });
            });
            Ok(())
        })
    }
}

/// Rows `first..first + scales.len()` of `x`.
struct QuantizeRows<'a, T> {
    x: &'a [T],
    rows: Rows,
    first: usize,
    q: &'a mut [i8],
    out: Rows,
    scales: &'a mut [f32],
}

impl<T: StoredFloat> Kernel for QuantizeRows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        for (row, scale) in self.scales.iter_mut().enumerate() {
            let x = self.rows.row(self.x, self.first + row);
            let q = &mut self.q[row * self.out.outer_stride..][..self.out.columns];
            *scale = quantize_row(isa, &StoredRow(x), q);
        }
    }
}

/// Quantises one row and returns its scale. The row is read twice, which spares scratch memory.
#[inline(always)]
pub(crate) fn quantize_row<I: Isa>(isa: I, x: &impl Row, q: &mut [i8]) -> f32 {
    let (columns, scale) = (x.len(), row_scale(isa, x));
    for start in (0..columns).step_by(LANES) {
        quantize_lanes(isa, x, start, scale, &mut q[start..columns.min(start + LANES)]);
    }
    scale
}

/// The scale of one row: NaN where the row holds a NaN or an infinity.
#[inline(always)]
pub(crate) fn row_scale<I: Isa>(isa: I, x: &impl Row) -> f32 {
    let columns = x.len();
    let mut greatest = isa.splat(0.0);
    let mut finite = true;
    for start in (0..columns).step_by(LANES) {
        let size = isa.abs(x.at(isa, start));
        greatest = isa.max(size, greatest);
        // False for NaN too. Lanes beyond the row are zeros.
        finite &= isa.less(size, isa.splat(f32::INFINITY)) == first_lanes(LANES);
    }
    if !finite {
        return f32::NAN;
    }
    (isa.max_lane(greatest) / 127.0).max(f32::MIN_POSITIVE)
}

/// Up to 16 elements of a row with a scale of [`row_scale`], from `start` on; zeros where the scale is NaN.
#[inline(always)]
pub(crate) fn quantize_lanes<I: Isa>(isa: I, x: &impl Row, start: usize, scale: f32, q: &mut [i8]) {
    if scale.is_nan() {
        q.fill(0);
        return;
    }
    // Rounding in the conversion, to nearest even. The quotient is at most 127 and a rounding step, so that the clamp
    // to +-127 is the conversion's own: 127.00001 rounds to 127.
    let inverse = isa.splat(1.0 / scale);
    isa.store_i8_partial(isa.to_i32(isa.mul(x.at(isa, start), inverse)), q);
}
