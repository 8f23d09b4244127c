//! SiLU, GELU and their gated forms, as an operator of their own.

use crate::{
    device::Cpu,
    simd::{Isa, Kernel, LANES, StoredFloat, activation},
    stream::CpuStream,
    view::{Rows, read, with_float, write},
};
use halite_hal::Result;
use halite_kernels::{
    Checked, Support,
    activation::{Activation, ActivationArgs, ActivationOps, ActivationSpec, Gating},
};

impl ActivationOps for Cpu {
    fn activation_supports(&self, spec: &ActivationSpec) -> Support {
        if spec.dtype.is_float() {
            Support::Native
        } else {
            Support::No(format!("{}: floating-point types are built", spec.dtype))
        }
    }

    fn activation(&self, _stream: &mut CpuStream, args: Checked<ActivationArgs<'_, Self>>) -> Result<()> {
        self.activation_supports(args.spec).require("activation", self, args.spec)?;
        let (activation, gating) = (args.spec.activation, args.spec.gating);
        with_float!(args.spec.dtype, Float => {
            let x = read::<Float>(args.x)?;
            let mut out = write::<Float>(args.out)?;
            let (rows, out_rows) = (x.rows, out.rows);
            let x = x.data();
            let per_task = self.team().units_per_task(rows.count(), rows.columns);
            let tasks = out.data().chunks_mut(out_rows.outer_stride * per_task).enumerate();
            self.team().each(tasks, |(task, out)| {
                let first = task * per_task;
                let count = per_task.min(rows.count() - first);
                self.tier().run(ActivateRows { activation, gating, x, rows, first, count, out, out_rows });
            });
            Ok(())
        })
    }
}

struct ActivateRows<'a, T> {
    activation: Activation,
    gating: Gating,
    x: &'a [T],
    rows: Rows,
    first: usize,
    count: usize,
    out: &'a mut [T],
    out_rows: Rows,
}

impl<T: StoredFloat> Kernel for ActivateRows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let columns = self.out_rows.columns;
        for row in 0..self.count {
            let x = self.rows.row(self.x, self.first + row);
            let (gate, up) = x.split_at(columns);
            let out = &mut self.out[row * self.out_rows.outer_stride..][..columns];
            for (vector, out) in out.chunks_mut(LANES).enumerate() {
                let range = vector * LANES..columns.min((vector + 1) * LANES);
                let mut y = activate(isa, self.activation, T::load_partial(isa, &gate[range.clone()]));
                if self.gating == Gating::GateThenUp {
                    y = isa.mul(y, T::load_partial(isa, &up[range]));
                }
                T::store_partial(isa, y, out);
            }
        }
    }
}

/// One vector.
#[inline(always)]
pub(crate) fn activate<I: Isa>(isa: I, activation: Activation, x: I::F32) -> I::F32 {
    match activation {
        Activation::GeluErf => activation::gelu_erf(isa, x),
        Activation::GeluTanh => activation::gelu_tanh(isa, x),
        _ => activation::silu(isa, x),
    }
}
