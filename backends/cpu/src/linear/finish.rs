//! The float epilogue: bias, activation or gate, soft-cap, residual, rounding to the output type.
//!
//! The order, for every row count, tier and thread, is the contract's:
//!
//! ```text
//! y = sum                                  float weights: one chain of multiply-adds in ascending K
//! y = (f32(sum) * w_scale[n]) * a_scale[m]  INT8
//! y = y + bias[n];  y = act(y)  or  y = act(y_gate) * y_up;  y = cap * tanh(y / cap)
//! y = y + residual[m, n];  out = round(y)
//! ```
//!
//! Each step rounds by itself; no multiply-add is used, so the INT8 product is the same in both tiers up to the
//! activation's.

use super::{
    epilogue::{FloatEpilogue, Int8Epilogue},
    output::OutputRows,
    pack::{Columns, Place},
};
use crate::{
    activation::activate,
    simd::{Isa, LANES, SoftCap, StoredFloat},
    view::Rows,
};
use halite_kernels::activation::Activation;
use std::ops::Range;

/// What happens to a float product.
pub(super) struct Finish<'a, T> {
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
    /// `[rows, results]`
    pub(super) residual: Option<(&'a [T], Rows)>,
    /// `[rows, results]`
    pub(super) out: OutputRows<'a, T>,
}

impl<T> Finish<'_, T> {
    /// The weight channels of a panel's vector.
    #[inline(always)]
    fn channels(&self, place: Place, vector: usize) -> Range<usize> {
        match self.columns {
            Columns::Plain => {
                let end = place.column + place.valid;
                let start = (place.column + vector * LANES).min(end);
                start..end.min(start + LANES)
            }
            Columns::Gated => {
                let start = vector * self.results + place.column;
                start..start + place.valid
            }
        }
    }
}

impl<T: StoredFloat> FloatEpilogue for Finish<'_, T> {
    #[inline(always)]
    fn store<I: Isa>(&mut self, isa: I, row: usize, place: Place, mut acc: [I::F32; 2]) {
        if let Some(bias) = self.bias {
            for (vector, acc) in acc.iter_mut().enumerate() {
                *acc = isa.add(*acc, isa.load_partial(&bias[self.channels(place, vector)]));
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
        let out = self.out.segment(row, place.column, place.valid);
        for (vector, out) in out.chunks_mut(LANES).enumerate().take(vectors) {
            let mut y = acc[vector];
            if let Some((residual, rows)) = self.residual {
                let start = rows.start(row, 0) + place.column + vector * LANES;
                y = isa.add(y, T::load_partial(isa, &residual[start..start + out.len()]));
            }
            T::store_partial(isa, y, out);
        }
    }
}

/// The scales of an INT8 product, and what follows.
pub(super) struct Scaled<'a, T> {
    /// `[rows]`
    pub(super) a_scale: &'a [f32],
    /// `[weight_rows]`
    pub(super) w_scale: &'a [f32],
    pub(super) finish: Finish<'a, T>,
}

impl<T: StoredFloat> Int8Epilogue for Scaled<'_, T> {
    #[inline(always)]
    fn store<I: Isa>(&mut self, isa: I, row: usize, place: Place, acc: [I::I32; 2]) {
        let a_scale = isa.splat(self.a_scale[row]);
        let mut scaled = [a_scale; 2];
        for (vector, scaled) in scaled.iter_mut().enumerate() {
            let w_scale = isa.load_partial(&self.w_scale[self.finish.channels(place, vector)]);
            *scaled = isa.mul(isa.mul(isa.to_f32(acc[vector]), w_scale), a_scale);
        }
        self.finish.store(isa, row, place, scaled);
    }
}
