//! A product for each head: rows of all tokens of a head times the head's matrix.

use super::packed::HeadWeights;
use crate::{
    device::Cpu,
    linear::{
        epilogue::{Epilogue, RowSums},
        float::{FloatProduct, FloatRows},
        output::OutputRows,
        pack::Place,
        product::{Multiply, Product},
    },
    simd::{Isa, LANES, StoredFloat},
    view::{read, write},
};
use halite_hal::{Result, Tensor};

/// Elements after a head's row that go through as they are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carried(pub(super) usize);

impl Cpu {
    /// `out[t, h] = [W[h] x[t, h], carried]`, `x` and `out` `[tokens, heads, ..]`.
    pub(super) fn head_products<T: StoredFloat>(
        &self,
        weights: HeadWeights<'_, T>,
        Carried(carried): Carried,
        x: &Tensor<Cpu>,
        out: &Tensor<Cpu>,
    ) -> Result<()> {
        if out.shape().elements() == 0 {
            return Ok(());
        }
        let (x, mut out) = (read::<f32>(x)?, write::<f32>(out)?);
        let (rows, to) = (x.rows, out.rows);
        let (k, n) = weights.sizes();
        let columns = (to.inner - 1) * to.inner_stride + to.columns;
        let out = OutputRows::new(out.data(), to.outer, columns, to.outer_stride);
        // Each head has its own columns, so heads are the tasks.
        let width = if to.inner > 1 { to.inner_stride } else { columns };
        let heads = out.pieces(width).enumerate();
        self.team().each(heads, |(head, mut out)| {
            let x = &x.data()[rows.start(0, head)..];
            for token in 0..if carried > 0 { rows.outer } else { 0 } {
                let from = &x[token * rows.outer_stride + k..][..carried];
                out.segment(token, n, carried).copy_from_slice(from);
            }
            let product =
                FloatProduct::new(FloatRows::new(x, rows.outer, rows.outer_stride, k), weights.head(head));
            self.tier().run(Multiply { product, panels: 0..product.panels(), epilogue: Plain(out) });
        });
        Ok(())
    }
}

/// The sums themselves.
struct Plain<'a>(OutputRows<'a, f32>);

impl Epilogue for Plain<'_> {
    type Sum = f32;

    #[inline(always)]
    fn store<I: Isa>(&mut self, isa: I, row: usize, place: Place, sums: &RowSums<f32>) {
        let out = self.0.segment(row, place.column, place.valid);
        for (out, sums) in out.chunks_mut(LANES).zip(sums) {
            isa.store_partial(isa.load(sums), out);
        }
    }
}
