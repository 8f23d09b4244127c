//! Results as integers by a static scale: `out = saturate(round_ties_even(y / scale) + zero_point)`.

use super::{
    epilogue::{Epilogue, RowSums},
    finish::Arithmetic,
    output::OutputRows,
    pack::Place,
};
use crate::{
    quantize::Bytes,
    simd::{Isa, LANES},
};
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
        let zero = (self.scale.zero_point - i32::from(self.flip)) as f32;
        let bytes = Bytes { zero, least: -128.0, flip: self.flip };
        let out = self.out.segment(row, place.column, place.valid);
        for (y, out) in results.into_iter().zip(out.chunks_mut(LANES)) {
            bytes.store(isa, isa.div(y, scale), out);
        }
    }
}
