//! The AVX-512 tier: one instruction, or a few, an operation.

use std::arch::x86_64::*;

use half::{bf16, f16};

use super::{Isa, Kernel, LANES, Mask, features::Features, first_lanes};

/// The token of the AVX-512 tier. Only [`Avx512::detect`] makes one, so whoever holds it may use the instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Avx512(());

impl Avx512 {
    /// The token, if the CPU has every feature that [`Avx512::enabled`] enables.
    pub(crate) fn detect() -> Option<Self> {
        Features::detected().contain(Features::AVX512_TIER).then_some(Self(()))
    }

    /// The function that has the instructions: everything `#[inline(always)]` below it is compiled with them.
    ///
    /// # Safety
    /// The CPU has the features, which the token proves.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")]
    unsafe fn enabled<K: Kernel>(self, kernel: K) -> K::Output {
        kernel.run(self)
    }
}

/// Register-only intrinsics: the token proves the instructions, and there is nothing else to prove.
macro_rules! isa {
    ($call:expr) => {
        // SAFETY: the token exists only where the CPU has these instructions; no memory is touched.
        unsafe { $call }
    };
}

/// The 8 upper lanes.
#[inline(always)]
fn upper(x: __m512) -> __m256 {
    isa!(_mm512_extractf32x8_ps::<1>(x))
}

/// Folds the tree that [`Isa::sum`] documents.
macro_rules! tree {
    ($x:expr, $wide:ident, $narrow:ident) => {{
        let x = $x;
        let x = isa!($wide(_mm512_castps512_ps256(x), upper(x)));
        let x = isa!($narrow(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x)));
        let x = isa!($narrow(x, _mm_movehl_ps(x, x)));
        let x = isa!($narrow(x, _mm_shuffle_ps::<1>(x, x)));
        isa!(_mm_cvtss_f32(x))
    }};
}

impl Isa for Avx512 {
    type F32 = __m512;
    type I32 = __m512i;
    const TILE_ROWS: usize = 12;

    #[inline(always)]
    fn call<K: Kernel>(self, kernel: K) -> K::Output {
        // SAFETY: `detect` found every feature that `enabled` enables.
        unsafe { self.enabled(kernel) }
    }
    #[inline(always)]
    fn prefetch(self, address: *const u8) {
        // SAFETY: a prefetch is a hint and does not fault, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }

    #[inline(always)]
    fn splat(self, x: f32) -> __m512 {
        isa!(_mm512_set1_ps(x))
    }
    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> __m512 {
        // SAFETY: the array has the 64 bytes that are read; the token proves the instruction.
        unsafe { _mm512_loadu_ps(from.as_ptr()) }
    }
    #[inline(always)]
    fn load_partial(self, from: &[f32]) -> __m512 {
        // SAFETY: masked lanes are not read, and the mask has no lane beyond the slice.
        unsafe { _mm512_maskz_loadu_ps(first_lanes(from.len()), from.as_ptr()) }
    }
    #[inline(always)]
    fn load_bf16(self, from: &[bf16; LANES]) -> __m512 {
        // SAFETY: the array has the 32 bytes that are read; the token proves the instruction.
        widen_bf16(unsafe { _mm256_loadu_si256(from.as_ptr().cast()) })
    }
    #[inline(always)]
    fn load_bf16_partial(self, from: &[bf16]) -> __m512 {
        // SAFETY: masked lanes are not read, and the mask has no lane beyond the slice.
        widen_bf16(unsafe { _mm256_maskz_loadu_epi16(first_lanes(from.len()), from.as_ptr().cast()) })
    }
    #[inline(always)]
    fn load_f16(self, from: &[f16; LANES]) -> __m512 {
        // SAFETY: the array has the 32 bytes that are read; the token proves the instructions.
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from.as_ptr().cast())) }
    }
    #[inline(always)]
    fn load_f16_partial(self, from: &[f16]) -> __m512 {
        // SAFETY: masked lanes are not read, and the mask has no lane beyond the slice.
        unsafe {
            let bits = _mm256_maskz_loadu_epi16(first_lanes(from.len()), from.as_ptr().cast());
            _mm512_cvtph_ps(bits)
        }
    }
    #[inline(always)]
    fn store(self, x: __m512, to: &mut [f32; LANES]) {
        // SAFETY: the array has the 64 bytes that are written; the token proves the instruction.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), x) }
    }
    #[inline(always)]
    fn store_partial(self, x: __m512, to: &mut [f32]) {
        // SAFETY: masked lanes are not written, and the mask has no lane beyond the slice.
        unsafe { _mm512_mask_storeu_ps(to.as_mut_ptr(), first_lanes(to.len()), x) }
    }
    #[inline(always)]
    fn store_bf16_partial(self, x: __m512, to: &mut [bf16]) {
        // By integers: the bf16 instruction of newer CPUs flushes subnormal values to zero.
        // SAFETY: the token proves the instructions; masked lanes are not written, and the mask has no lane beyond
        // the slice.
        unsafe {
            let bits = _mm512_castps_si512(x);
            let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
            let rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
            let quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x0040_0000));
            let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x);
            let upper = _mm512_srli_epi32::<16>(_mm512_mask_mov_epi32(rounded, nan, quiet));
            // Narrowed by the store itself: LLVM 22 makes one of 32 bits of a narrowing and a masked store of one lane.
            _mm512_mask_cvtepi32_storeu_epi16(to.as_mut_ptr().cast(), first_lanes(to.len()), upper);
        }
    }
    #[inline(always)]
    fn store_f16_partial(self, x: __m512, to: &mut [f16]) {
        // SAFETY: the token proves the instructions; masked lanes are not written, and the mask has no lane beyond
        // the slice.
        unsafe {
            let bits = _mm512_cvtps_ph::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(x);
            _mm256_mask_storeu_epi16(to.as_mut_ptr().cast(), first_lanes(to.len()), bits);
        }
    }

    #[inline(always)]
    fn add(self, a: __m512, b: __m512) -> __m512 {
        isa!(_mm512_add_ps(a, b))
    }
    #[inline(always)]
    fn sub(self, a: __m512, b: __m512) -> __m512 {
        isa!(_mm512_sub_ps(a, b))
    }
    #[inline(always)]
    fn mul(self, a: __m512, b: __m512) -> __m512 {
        isa!(_mm512_mul_ps(a, b))
    }
    #[inline(always)]
    fn div(self, a: __m512, b: __m512) -> __m512 {
        isa!(_mm512_div_ps(a, b))
    }
    #[inline(always)]
    fn mul_add(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        isa!(_mm512_fmadd_ps(a, b, c))
    }
    #[inline(always)]
    fn max(self, a: __m512, b: __m512) -> __m512 {
        isa!(_mm512_max_ps(a, b))
    }
    #[inline(always)]
    fn min(self, a: __m512, b: __m512) -> __m512 {
        isa!(_mm512_min_ps(a, b))
    }
    #[inline(always)]
    fn abs(self, x: __m512) -> __m512 {
        isa!(_mm512_abs_ps(x))
    }
    #[inline(always)]
    fn round(self, x: __m512) -> __m512 {
        isa!(_mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(x))
    }
    #[inline(always)]
    fn scale_by_power(self, x: __m512, n: __m512) -> __m512 {
        isa!(_mm512_scalef_ps(x, n))
    }

    #[inline(always)]
    fn less(self, a: __m512, b: __m512) -> Mask {
        isa!(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b))
    }
    #[inline(always)]
    fn equal(self, a: __m512, b: __m512) -> Mask {
        isa!(_mm512_cmp_ps_mask::<_CMP_EQ_OQ>(a, b))
    }
    #[inline(always)]
    fn select(self, mask: Mask, yes: __m512, no: __m512) -> __m512 {
        isa!(_mm512_mask_mov_ps(no, mask, yes))
    }
    #[inline(always)]
    fn sum(self, x: __m512) -> f32 {
        tree!(x, _mm256_add_ps, _mm_add_ps)
    }
    #[inline(always)]
    fn max_lane(self, x: __m512) -> f32 {
        tree!(x, _mm256_max_ps, _mm_max_ps)
    }

    #[inline(always)]
    fn splat_i32(self, x: i32) -> __m512i {
        isa!(_mm512_set1_epi32(x))
    }
    #[inline(always)]
    fn load_i32(self, from: &[i32; LANES]) -> __m512i {
        // SAFETY: the array has the 64 bytes that are read; the token proves the instruction.
        unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
    }
    #[inline(always)]
    fn load_bytes(self, from: &[u8; 4 * LANES]) -> __m512i {
        // SAFETY: the array has the 64 bytes that are read; the token proves the instruction.
        unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
    }
    #[inline(always)]
    fn load_i8_partial(self, from: &[i8]) -> __m512i {
        // SAFETY: masked lanes are not read, and the mask has no lane beyond the slice.
        unsafe { _mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(first_lanes(from.len()), from.as_ptr())) }
    }
    #[inline(always)]
    fn store_i32(self, x: __m512i, to: &mut [i32; LANES]) {
        // SAFETY: the array has the 64 bytes that are written; the token proves the instruction.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), x) }
    }
    #[inline(always)]
    fn store_i32_partial(self, x: __m512i, to: &mut [i32]) {
        // SAFETY: masked lanes are not written, and the mask has no lane beyond the slice.
        unsafe { _mm512_mask_storeu_epi32(to.as_mut_ptr(), first_lanes(to.len()), x) }
    }
    #[inline(always)]
    fn store_i8_partial(self, x: __m512i, to: &mut [i8]) {
        // SAFETY: masked lanes are not written, and the mask has no lane beyond the slice.
        unsafe { _mm512_mask_cvtsepi32_storeu_epi8(to.as_mut_ptr(), first_lanes(to.len()), x) }
    }
    #[inline(always)]
    fn add_i32(self, a: __m512i, b: __m512i) -> __m512i {
        isa!(_mm512_add_epi32(a, b))
    }
    #[inline(always)]
    fn sub_i32(self, a: __m512i, b: __m512i) -> __m512i {
        isa!(_mm512_sub_epi32(a, b))
    }
    #[inline(always)]
    fn and(self, a: __m512i, b: __m512i) -> __m512i {
        isa!(_mm512_and_si512(a, b))
    }
    #[inline(always)]
    fn shift_left<const N: u32>(self, a: __m512i) -> __m512i {
        isa!(_mm512_slli_epi32::<N>(a))
    }
    #[inline(always)]
    fn shift_right<const N: u32>(self, a: __m512i) -> __m512i {
        isa!(_mm512_srli_epi32::<N>(a))
    }
    #[inline(always)]
    fn sum_i32(self, x: __m512i) -> i32 {
        isa!(_mm512_reduce_add_epi32(x))
    }
    #[inline(always)]
    fn dot_u8_i8(self, acc: __m512i, u: __m512i, s: __m512i) -> __m512i {
        isa!(_mm512_dpbusd_epi32(acc, u, s))
    }

    #[inline(always)]
    fn to_i32(self, x: __m512) -> __m512i {
        isa!(_mm512_cvtps_epi32(x))
    }
    #[inline(always)]
    fn to_f32(self, x: __m512i) -> __m512 {
        isa!(_mm512_cvtepi32_ps(x))
    }
    #[inline(always)]
    fn to_bits(self, x: __m512) -> __m512i {
        isa!(_mm512_castps_si512(x))
    }
    #[inline(always)]
    fn of_bits(self, x: __m512i) -> __m512 {
        isa!(_mm512_castsi512_ps(x))
    }
}

#[inline(always)]
fn widen_bf16(bits: __m256i) -> __m512 {
    isa!(_mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(bits))))
}
