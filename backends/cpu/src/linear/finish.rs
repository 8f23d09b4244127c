//! The float epilogue: bias, activation or gate, soft-cap, residual, rounding to the output type.
//!
//! The order, for every row count, tier and thread, is the contract's:
//!
//! ```text
//! y = sum                                  float weights: one chain of multiply-adds in ascending K
//! y = sum and scales                       integers: see `scaled`
//! y = y + bias[n];  y = act(y)  or  y = act(y_gate) * y_up;  y = cap * tanh(y / cap)
//! y = y + residual[m, n];  out = round(y)
//! ```
//!
//! Each step rounds by itself; no multiply-add is used, so the INT8 product is the same in all tiers up to the
//! activation's.

use std::ops::Range;

use super::{
    epilogue::{Epilogue, RowSums},
    output::OutputRows,
    pack::{Columns, Place},
};
use crate::{
    activation::activate,
    simd::{Isa, LANES, SoftCap, StoredFloat},
    view::Rows,
};
use halite_kernels::activation::Activation;

/// What happens to a product before it is stored.
pub(super) struct Arithmetic<'a> {
    /// Plain or gated; a gated product has gates in a panel's first vector and ups in its second.
    pub(super) columns: Columns,
    /// Result columns.
    pub(super) results: usize,
    /// `[weight_rows]`
    pub(super) bias: Option<&'a [f32]>,
    /// Of each element, or of the gates.
    pub(super) activation: Option<Activation>,
    /// Of each result.
    pub(super) soft_cap: Option<f32>,
}

impl Arithmetic<'_> {
    /// The results of one row of a panel; of a gated product in the first vector.
    #[inline(always)]
    pub(super) fn apply<I: Isa>(&self, isa: I, place: Place, sums: &RowSums<f32>) -> [I::F32; 2] {
        let mut acc = [isa.load(&sums[0]), isa.load(&sums[1])];
        if let Some(bias) = self.bias {
            for (acc, channels) in acc.iter_mut().zip(self.columns.channels(self.results, place)) {
                *acc = isa.add(*acc, isa.load_partial(&bias[channels]));
            }
        }
        let vectors = match self.columns {
            Columns::Plain => {
                if let Some(activation) = self.activation {
                    for acc in &mut acc {
                        *acc = activate(isa, activation, *acc);
                    }
                }
                2
            }
            Columns::Gated => {
                // No closure around vectors, here and below: one that is not inlined loses the instruction set.
                if let Some(activation) = self.activation {
                    acc[0] = activate(isa, activation, acc[0]);
                }
                acc[0] = isa.mul(acc[0], acc[1]);
                1
            }
        };
        if let Some(cap) = self.soft_cap {
            let mut values = [[0.0; LANES]; 2];
            for (acc, values) in acc.iter().zip(&mut values) {
                isa.store(*acc, values);
            }
            isa.call(SoftCap { cap, values: &mut values.as_flattened_mut()[..vectors * LANES] });
            for (acc, values) in acc.iter_mut().zip(&values) {
                *acc = isa.load(values);
            }
        }
        acc
    }
}

/// What happens to a product on its way to floats.
pub(super) struct Finish<'a, T> {
    pub(super) arithmetic: Arithmetic<'a>,
    /// `[rows, results]`
    pub(super) residual: Option<(&'a [T], Rows)>,
    /// `[rows, results]`
    pub(super) out: OutputRows<'a, T>,
}

impl<T: StoredFloat> Epilogue for Finish<'_, T> {
    type Sum = f32;

    #[inline(always)]
    fn prefetch<I: Isa>(&self, isa: I, rows: Range<usize>, place: Place) {
        self.out.prefetch(isa, rows, place.column, place.valid);
    }

    #[inline(always)]
    fn store<I: Isa>(&mut self, isa: I, row: usize, place: Place, sums: &RowSums<f32>) {
        let results = self.arithmetic.apply(isa, place, sums);
        let out = self.out.segment(row, place.column, place.valid);
        for (vector, out) in out.chunks_mut(LANES).enumerate() {
            let mut y = results[vector];
            if let Some((residual, rows)) = self.residual {
                let start = rows.start(row, 0) + place.column + vector * LANES;
                y = isa.add(y, T::load_partial(isa, &residual[start..start + out.len()]));
            }
            T::store_partial(isa, y, out);
        }
    }
}
