//! Quotients as bytes: the last step of whatever is quantised with a zero point or a scale that is known.

use crate::simd::Isa;

/// I8, or U8 as I8 with the highest bit turned.
#[derive(Clone, Copy)]
pub(crate) struct Bytes {
    /// What 0 becomes, and NaN, which cannot be told; of U8 128 below. A small integer, exact in F32.
    pub(crate) zero: f32,
    /// The least that is stored, of U8 128 below.
    pub(crate) least: f32,
    /// What the bytes of a signed integer are XORed with: 128 where they are U8.
    pub(crate) flip: u8,
}

impl Bytes {
    /// `saturate(round_ties_even(x) + zero)` of up to 16 quotients.
    #[inline(always)]
    pub(crate) fn store<I: Isa>(self, isa: I, x: I::F32, q: &mut [i8]) {
        let steps = isa.round(x);
        let steps = isa.select(isa.equal(steps, steps), steps, isa.splat(0.0));
        let y = isa.add(steps, isa.splat(self.zero));
        let y = isa.min(isa.max(y, isa.splat(self.least)), isa.splat(127.0));
        isa.store_i8_partial(isa.to_i32(y), q);
        for q in q {
            *q ^= self.flip as i8;
        }
    }
}
