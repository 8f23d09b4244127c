//! How the cache stores keys and values, as a type: floats, or INT8 with a scale a token slot.
//!
//! An INT8 element is read as `f32(q) · scale`, one F32 product.

use crate::simd::{Isa, LANES, StoredFloat};
use half::{bf16, f16};
use std::ops::Range;

/// A stored element. Scales are a head's, `[block_size]`, and empty for floats.
pub(crate) trait StoredKv: bytemuck::Pod + Send + Sync {
    /// What 16 elements are multiplied with: nothing, for floats.
    type Scale<I: Isa>: Copy;
    /// The scales of up to 16 slots, a lane each; zero in the other lanes.
    fn slot_scales<I: Isa>(isa: I, scales: &[f32], slots: Range<usize>) -> Self::Scale<I>;
    /// The scale of one slot in all lanes.
    fn slot_scale<I: Isa>(isa: I, scales: &[f32], slot: usize) -> Self::Scale<I>;
    /// Reads 16 elements.
    fn load<I: Isa>(isa: I, from: &[Self; LANES], scale: Self::Scale<I>) -> I::F32;
    /// Reads up to 16 elements; zero in the other lanes.
    fn load_partial<I: Isa>(isa: I, from: &[Self], scale: Self::Scale<I>) -> I::F32;
    /// One element of a slot.
    fn widen(self, scales: &[f32], slot: usize) -> f32;
}

macro_rules! float {
    ($type:ty) => {
        impl StoredKv for $type {
            type Scale<I: Isa> = ();
            #[inline(always)]
            fn slot_scales<I: Isa>(_: I, _: &[f32], _: Range<usize>) {}
            #[inline(always)]
            fn slot_scale<I: Isa>(_: I, _: &[f32], _: usize) {}
            #[inline(always)]
            fn load<I: Isa>(isa: I, from: &[Self; LANES], (): ()) -> I::F32 {
                StoredFloat::load(isa, from)
            }
            #[inline(always)]
            fn load_partial<I: Isa>(isa: I, from: &[Self], (): ()) -> I::F32 {
                StoredFloat::load_partial(isa, from)
            }
            #[inline(always)]
            fn widen(self, _: &[f32], _: usize) -> f32 {
                StoredFloat::widen(self)
            }
        }
    };
}

float!(f32);
float!(bf16);
float!(f16);

impl StoredKv for i8 {
    type Scale<I: Isa> = I::F32;
    #[inline(always)]
    fn slot_scales<I: Isa>(isa: I, scales: &[f32], slots: Range<usize>) -> I::F32 {
        isa.load_partial(&scales[slots])
    }
    #[inline(always)]
    fn slot_scale<I: Isa>(isa: I, scales: &[f32], slot: usize) -> I::F32 {
        isa.splat(scales[slot])
    }
    #[inline(always)]
    fn load<I: Isa>(isa: I, from: &[Self; LANES], scale: I::F32) -> I::F32 {
        Self::load_partial(isa, from, scale)
    }
    #[inline(always)]
    fn load_partial<I: Isa>(isa: I, from: &[Self], scale: I::F32) -> I::F32 {
        isa.mul(isa.to_f32(isa.load_i8_partial(from)), scale)
    }
    #[inline(always)]
    fn widen(self, scales: &[f32], slot: usize) -> f32 {
        f32::from(self) * scales[slot]
    }
}

/// Runs an expression with a type alias for how a supported format stores its elements.
macro_rules! with_stored {
    ($format:expr, $element:ident => $body:expr) => {
        match $format {
            halite_kernels::cache::KvFormat::Int8PerTokenHead => {
                type $element = i8;
                $body
            }
            other => crate::view::with_float!(other.element(), $element => $body),
        }
    };
}
pub(super) use with_stored;
