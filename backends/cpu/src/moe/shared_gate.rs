//! How much of the shared expert a token gets.

use crate::{
    cost,
    device::Cpu,
    simd::{Isa, Kernel, LANES, StoredFloat, activation::sigmoid},
    view::{read, with_float, write},
};
use halite_hal::{Result, Tensor};

/// `y[t] *= sigmoid(x[t] · gate)`, row by row.
pub(super) fn apply(cpu: &Cpu, x: &Tensor<Cpu>, gate: &Tensor<Cpu>, y: &Tensor<Cpu>) -> Result<()> {
    let gate = read::<f32>(gate)?;
    with_float!(x.dtype(), Float => {
        let (x, mut y) = (read::<Float>(x)?, write::<Float>(y)?);
        let (rows, layout) = (x.rows, y.rows);
        let (x, gate) = (x.data(), gate.data());
        cpu.each_rows(&mut y, cost::gated(layout.columns), |first, _, y| {
            for (row, y) in y.chunks_mut(layout.outer_stride).enumerate() {
                let x = rows.row(x, first + row);
                cpu.tier().run(Gate { x, gate, y: &mut y[..layout.columns] });
            }
        });
        Ok(())
    })
}

struct Gate<'a, T> {
    x: &'a [T],
    gate: &'a [f32],
    y: &'a mut [T],
}

impl<T: StoredFloat> Kernel for Gate<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let mut sum = isa.splat(0.0);
        for (x, gate) in self.x.chunks(LANES).zip(self.gate.chunks(LANES)) {
            sum = isa.mul_add(T::load_partial(isa, x), isa.load_partial(gate), sum);
        }
        let share = sigmoid(isa, isa.splat(isa.sum(sum)));
        for y in self.y.chunks_mut(LANES) {
            let gated = isa.mul(T::load_partial(isa, y), share);
            T::store_partial(isa, gated, y);
        }
    }
}
