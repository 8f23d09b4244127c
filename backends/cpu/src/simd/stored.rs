//! Element types that memory holds and kernels compute with as `f32`.

use half::{bf16, f16};

use super::{Isa, LANES};

/// A float that widens to `f32` exactly, so that one kernel serves weights, activations and caches of each kind.
pub(crate) trait StoredFloat: Copy + Send + Sync + 'static {
    /// Positive zero.
    const ZERO: Self;
    /// Reads 16 values.
    fn load<I: Isa>(isa: I, from: &[Self; LANES]) -> I::F32;
    /// Reads up to 16 values; zero in the other lanes.
    fn load_partial<I: Isa>(isa: I, from: &[Self]) -> I::F32;
    /// Narrows to nearest even and writes the first `to.len()` values.
    fn store_partial<I: Isa>(isa: I, x: I::F32, to: &mut [Self]);
    /// One value.
    fn widen(self) -> f32;
}

macro_rules! stored {
    ($type:ty, $zero:expr, $load:ident, $load_partial:ident, $store_partial:ident, $widen:expr) => {
        impl StoredFloat for $type {
            const ZERO: Self = $zero;
            #[inline(always)]
            fn load<I: Isa>(isa: I, from: &[Self; LANES]) -> I::F32 {
                isa.$load(from)
            }
            #[inline(always)]
            fn load_partial<I: Isa>(isa: I, from: &[Self]) -> I::F32 {
                isa.$load_partial(from)
            }
            #[inline(always)]
            fn store_partial<I: Isa>(isa: I, x: I::F32, to: &mut [Self]) {
                isa.$store_partial(x, to);
            }
            #[inline(always)]
            fn widen(self) -> f32 {
                $widen(self)
            }
        }
    };
}

stored!(f32, 0.0, load, load_partial, store_partial, |x| x);
stored!(bf16, bf16::ZERO, load_bf16, load_bf16_partial, store_bf16_partial, bf16::to_f32_const);
stored!(f16, f16::ZERO, load_f16, load_f16_partial, store_f16_partial, f16::to_f32_const);
