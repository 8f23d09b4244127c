//! Floats from bytes: `scale · (q - z)`, then `+ min` where there are minima, each rounded by itself.

use super::{
    groups::{LINE, LaneFactors, PieceFloats},
    pack::PANEL,
};
use crate::simd::{Isa, Kernel, LANES};

/// Bytes of a vector: four values of K of each lane.
const BYTES: usize = 4 * LANES;

/// Bytes `q + 128` and integers from 0 to 255 lie between this float and the next power of two, one apart.
const MAGIC: f32 = 8_388_608.0;

/// The factors of half of a panel's channels.
#[derive(Clone, Copy)]
pub(super) struct HalfFactors<I: Isa> {
    zero: I::F32,
    scale: I::F32,
    min: Option<I::F32>,
}

impl<I: Isa> HalfFactors<I> {
    /// Of the first half (0) or the second (1).
    #[inline(always)]
    pub(super) fn new(isa: I, factors: &LaneFactors<'_>, half: usize) -> Self {
        let part = half * LANES..(half + 1) * LANES;
        let mut zero = isa.splat(MAGIC + 128.0);
        if let Some(zeros) = factors.zeros {
            let zeros = isa.load_i8_partial(bytemuck::cast_slice(&zeros[part.clone()]));
            zero = isa.add(zero, isa.to_f32(zeros));
        }
        let scale = isa.load_partial(&factors.scales[part.clone()]);
        let min = factors.mins.map(|mins| isa.load_partial(&mins[part]));
        HalfFactors { zero, scale, min }
    }

    /// Four values of K.
    #[inline(always)]
    pub(super) fn quad(&self, isa: I, bytes: &[u8; BYTES]) -> [I::F32; 4] {
        let bytes = isa.load_bytes(bytes);
        [
            self.value(isa, isa.and(bytes, isa.splat_i32(0xFF))),
            self.value(isa, isa.and(isa.shift_right::<8>(bytes), isa.splat_i32(0xFF))),
            self.value(isa, isa.and(isa.shift_right::<16>(bytes), isa.splat_i32(0xFF))),
            self.value(isa, isa.shift_right::<24>(bytes)),
        ]
    }

    /// Of integers from 0 to 255. As the low bits of a great float they need no conversion, and differences of such are exact.
    #[inline(always)]
    fn value(&self, isa: I, byte: I::I32) -> I::F32 {
        let great = isa.of_bits(isa.add_i32(byte, isa.splat_i32(MAGIC.to_bits().cast_signed())));
        let value = isa.mul(isa.sub(great, self.zero), self.scale);
        match self.min {
            Some(min) => isa.add(value, min),
            None => value,
        }
    }
}

/// A piece of a panel.
pub(super) struct Dequantize<'a> {
    /// Quads of bytes `q + 128`.
    pub(super) bytes: &'a [u8],
    pub(super) factors: LaneFactors<'a>,
    /// `[K][32]`, whole quads.
    pub(super) to: &'a mut PieceFloats,
}

impl Kernel for Dequantize<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        for half in 0..2 {
            let factors = HalfFactors::new(isa, &self.factors, half);
            let lines = self.bytes.as_chunks::<LINE>().0;
            for (line, to) in lines.iter().zip(self.to.as_chunks_mut::<{ 4 * PANEL }>().0) {
                let Some(bytes) = line[half * BYTES..].first_chunk() else { continue };
                for (value, to) in factors.quad(isa, bytes).into_iter().zip(to.as_chunks_mut::<PANEL>().0) {
                    isa.store_partial(value, &mut to[half * LANES..(half + 1) * LANES]);
                }
            }
        }
    }
}
