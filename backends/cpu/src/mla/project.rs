//! A product for each head: rows of all tokens of a head times the head's matrix.

use super::packed::HeadWeights;
use crate::{
    device::Cpu,
    linear::{
        epilogue::{Epilogue, RowSums},
        float::{FloatProduct, FloatRows, FloatWeights},
        output::OutputRows,
        pack::Place,
        product::{Multiply, Product},
        widened::WidenedProduct,
    },
    simd::{Isa, LANES, StoredFloat},
    view::{Rows, read, write},
};
use half::{bf16, f16};
use halite_hal::{Element, Result, Tensor};

/// Elements after a head's row that go through as they are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carried(pub(super) usize);

/// Elements of queries and results.
pub(super) trait RowElement: StoredFloat + Element {
    /// How their rows are multiplied: as they are, or widened on the way.
    type Product<'a, W: StoredFloat>: Product<Sum = f32>;

    /// The rows of a head, from the first of its elements on, times its weights.
    fn product<'a, W: StoredFloat>(
        values: &'a [Self],
        rows: Rows,
        weights: FloatWeights<'a, W>,
    ) -> Self::Product<'a, W>;
}

impl RowElement for f32 {
    type Product<'a, W: StoredFloat> = FloatProduct<'a, W>;

    fn product<'a, W: StoredFloat>(
        values: &'a [f32],
        rows: Rows,
        weights: FloatWeights<'a, W>,
    ) -> FloatProduct<'a, W> {
        FloatProduct::new(FloatRows::new(values, rows.outer, rows.outer_stride, weights.k()), weights)
    }
}

macro_rules! widened {
    ($type:ty) => {
        impl RowElement for $type {
            type Product<'a, W: StoredFloat> = WidenedProduct<'a, $type, W>;

            fn product<'a, W: StoredFloat>(
                values: &'a [$type],
                rows: Rows,
                weights: FloatWeights<'a, W>,
            ) -> WidenedProduct<'a, $type, W> {
                WidenedProduct::new(values, rows.outer, rows.outer_stride, weights)
            }
        }
    };
}

widened!(f16);
widened!(bf16);

impl Cpu {
    /// `out[t, h] = [W[h] x[t, h], carried]`, `x` and `out` `[tokens, heads, ..]`.
    pub(super) fn head_products<X: RowElement, W: StoredFloat>(
        &self,
        weights: HeadWeights<'_, W>,
        Carried(carried): Carried,
        x: &Tensor<Cpu>,
        out: &Tensor<Cpu>,
    ) -> Result<()> {
        if out.shape().elements() == 0 {
            return Ok(());
        }
        let (x, mut out) = (read::<X>(x)?, write::<X>(out)?);
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
            let product = X::product(x, rows, weights.head(head));
            let panels = 0..product.panels();
            self.tier().run(Multiply { product, panels, epilogue: Plain(out) });
        });
        Ok(())
    }
}

/// The sums themselves.
struct Plain<'a, X>(OutputRows<'a, X>);

impl<X: StoredFloat> Epilogue for Plain<'_, X> {
    type Sum = f32;

    #[inline(always)]
    fn store<I: Isa>(&mut self, isa: I, row: usize, place: Place, sums: &RowSums<f32>) {
        let out = self.0.segment(row, place.column, place.valid);
        for (out, sums) in out.chunks_mut(LANES).zip(sums) {
            X::store_partial(isa, isa.load(sums), out);
        }
    }
}
