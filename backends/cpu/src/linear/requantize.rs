//! Results as integers by a static scale: `out = saturate(round_ties_even(y / scale) + zero_point)`.

use super::{
    epilogue::{Epilogue, RowSums},
    finish::Arithmetic,
    output::OutputRows,
    pack::Place,
};
use crate::simd::{Isa, LANES};
use halite_kernels::linear::OutputScale;

/// What happens to a product on its way to I8 or U8.
pub(super) struct Requantize<'a> {
    pub(super) arithmetic: Arithmetic<'a>,
    pub(super) scale: OutputScale,
    /// What the bytes of a signed integer are XORed with: U8 is I8 with the highest bit turned, 128 below.
    pub(super) flip: u8,
    /// `[rows, results]`
    pub(super) out: OutputRows<'a, i8>,
}

impl Epilogue for Requantize<'_> {
    type Sum = f32;

    #[inline(always)]
    fn store<I: Isa>(&mut self, isa: I, row: usize, place: Place, sums: &RowSums<f32>) {
        let results = self.arithmetic.apply(isa, place, sums);
        let scale = isa.splat(self.scale.scale);
        // Small integers, exact in F32. NaN compares false and becomes the zero point.
        let zero_point = isa.splat((self.scale.zero_point - i32::from(self.flip)) as f32);
        let out = self.out.segment(row, place.column, place.valid);
        for (y, out) in results.into_iter().zip(out.chunks_mut(LANES)) {
            let steps = isa.round(isa.div(y, scale));
            let steps = isa.select(isa.equal(steps, steps), steps, isa.splat(0.0));
            let q = isa.add(steps, zero_point);
            let q = isa.min(isa.max(q, isa.splat(-128.0)), isa.splat(127.0));
            isa.store_i8_partial(isa.to_i32(q), out);
            for out in out {
                *out ^= self.flip as i8;
            }
        }
    }
}
