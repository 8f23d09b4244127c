//! The rotation alone.

use super::prepare::rotate;
use crate::{
    cost,
    device::Cpu,
    row::{Row, StoredRow},
    simd::{Isa, Kernel, LANES, StoredFloat},
    view::{Rows, read, write},
};
use halite_hal::{Element, Result};
use halite_kernels::quantize::{MAX_ROTATION_BLOCK, RotateArgs};

pub(super) fn rows<T: StoredFloat + Element>(device: &Cpu, args: &RotateArgs<'_, Cpu>) -> Result<()> {
    let (x, mut out) = (read::<T>(args.x)?, write::<T>(args.out)?);
    let (rows, layout, x, block) = (x.rows, out.rows, x.data(), args.spec.block);
    device.each_rows(&mut out, cost::rotated(layout.columns, block), |first, count, out| {
        device.tier().run(RotateRows { x, rows, first, count, block, out, layout });
    });
    Ok(())
}

/// Rows `first..first + count`.
struct RotateRows<'a, T> {
    x: &'a [T],
    rows: Rows,
    first: usize,
    count: usize,
    /// At most [`MAX_ROTATION_BLOCK`].
    block: usize,
    out: &'a mut [T],
    layout: Rows,
}

impl<T: StoredFloat> Kernel for RotateRows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let mut wide = [0.0; MAX_ROTATION_BLOCK];
        let wide = &mut wide[..self.block];
        for row in 0..self.count {
            let x = self.rows.row(self.x, self.first + row).chunks_exact(self.block);
            let out = &mut self.out[row * self.layout.outer_stride..][..self.layout.columns];
            for (x, out) in x.zip(out.chunks_exact_mut(self.block)) {
                let x = StoredRow(x);
                for (vector, to) in wide.chunks_mut(LANES).enumerate() {
                    isa.store_partial(x.at(isa, vector * LANES), to);
                }
                rotate(wide);
                for (from, out) in wide.chunks(LANES).zip(out.chunks_mut(LANES)) {
                    T::store_partial(isa, isa.load_partial(from), out);
                }
            }
        }
    }
}
