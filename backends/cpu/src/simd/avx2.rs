//! The AVX2 tiers, with and without VNNI: two halves of 8 lanes an operation.
//!
//! Every operation rounds as its twin in the AVX-512 tier does, so that the three give the same bits.

use std::arch::x86_64::*;

use half::{bf16, f16};

use super::{Isa, Kernel, LANES, Mask, features::Features};

/// The token of the AVX2 tiers. Only [`Avx2::detect`] makes one, so whoever holds it may use the instructions: AVX2,
/// FMA and F16C, and AVX-VNNI if `VNNI`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Avx2<const VNNI: bool>(());

impl<const VNNI: bool> Avx2<VNNI> {
    /// The token, if the CPU has every feature that [`Avx2::enabled`] or [`Avx2::enabled_vnni`] enables.
    pub(crate) fn detect() -> Option<Self> {
        let needed = if VNNI { Features::AVX_VNNI_TIER } else { Features::AVX2_TIER };
        Features::detected().contain(needed).then_some(Self(()))
    }

    /// The function that has the instructions: everything `#[inline(always)]` below it is compiled with them.
    ///
    /// # Safety
    /// The CPU has the features, which the token proves.
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn enabled<K: Kernel>(self, kernel: K) -> K::Output {
        kernel.run(self)
    }

    /// As [`Avx2::enabled`], with VNNI.
    ///
    /// # Safety
    /// The CPU has the features, which the token with `VNNI` proves.
    #[target_feature(enable = "avx2,fma,f16c,avxvnni")]
    unsafe fn enabled_vnni<K: Kernel>(self, kernel: K) -> K::Output {
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

/// 16 lanes of `f32`: the lower 8, the upper 8.
#[derive(Clone, Copy)]
pub(crate) struct F32(__m256, __m256);

/// 16 lanes of `i32`: the lower 8, the upper 8.
#[derive(Clone, Copy)]
pub(crate) struct I32(__m256i, __m256i);

/// One instruction on both halves.
macro_rules! both {
    ($vector:ident, $name:ident $(::<$constant:tt>)? ($($x:expr),*)) => {
        $vector(isa!($name $(::<$constant>)? ($($x.0),*)), isa!($name $(::<$constant>)? ($($x.1),*)))
    };
}

/// All bits of the lanes that the mask has, for one half.
#[inline(always)]
fn lanes_of(mask: Mask, first: i32) -> __m256i {
    isa!({
        let bits = _mm256_set1_epi32(i32::from(mask) >> first);
        let lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
        _mm256_cmpeq_epi32(_mm256_and_si256(bits, lane), lane)
    })
}

/// All bits of the first `n` lanes, for both halves.
#[inline(always)]
fn first_lanes(n: usize) -> I32 {
    let n = n.min(LANES) as i32;
    isa!({
        let n = _mm256_set1_epi32(n);
        let low = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        let high = _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15);
        I32(_mm256_cmpgt_epi32(n, low), _mm256_cmpgt_epi32(n, high))
    })
}

/// Up to 16 elements and `zero` behind them: there are no masked moves of elements below 32 bits.
#[inline(always)]
fn padded<T: Copy>(from: &[T], zero: T) -> [T; LANES] {
    let mut lanes = [zero; LANES];
    let n = from.len().min(LANES);
    lanes[..n].copy_from_slice(&from[..n]);
    lanes
}

/// The first `to.len()` elements.
#[inline(always)]
fn store_first<T: Copy>(lanes: &[T; LANES], to: &mut [T]) {
    let n = to.len().min(LANES);
    to[..n].copy_from_slice(&lanes[..n]);
}

/// Folds the tree that [`Isa::sum`] documents.
macro_rules! tree {
    ($x:expr, $wide:ident, $narrow:ident) => {{
        let F32(low, high) = $x;
        let x = isa!($wide(low, high));
        let x = isa!($narrow(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x)));
        let x = isa!($narrow(x, _mm_movehl_ps(x, x)));
        let x = isa!($narrow(x, _mm_shuffle_ps::<1>(x, x)));
        isa!(_mm_cvtss_f32(x))
    }};
}

/// 2^n for integers in -126..=127.
#[inline(always)]
fn power_of_two(n: I32) -> F32 {
    let bias = isa!(_mm256_set1_epi32(127));
    let biased = both!(I32, _mm256_add_epi32(n, I32(bias, bias)));
    let bits = both!(I32, _mm256_slli_epi32::<23>(biased));
    both!(F32, _mm256_castsi256_ps(bits))
}

/// Four products of unsigned and signed bytes a lane, added: by 16-bit products, which unlike those of bytes do not
/// saturate.
#[inline(always)]
fn dot_u8_i8(acc: __m256i, u: __m256i, s: __m256i) -> __m256i {
    isa!({
        let even_u = _mm256_and_si256(u, _mm256_set1_epi16(0x00ff));
        let odd_u = _mm256_srli_epi16::<8>(u);
        let even_s = _mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(s));
        let odd_s = _mm256_srai_epi16::<8>(s);
        let products = _mm256_add_epi32(_mm256_madd_epi16(even_u, even_s), _mm256_madd_epi16(odd_u, odd_s));
        _mm256_add_epi32(acc, products)
    })
}

impl<const VNNI: bool> Isa for Avx2<VNNI> {
    type F32 = F32;
    type I32 = I32;
    // Two vectors of two registers a row, beside the four of a step's weights.
    const TILE_ROWS: usize = 2;

    #[inline(always)]
    fn call<K: Kernel>(self, kernel: K) -> K::Output {
        // SAFETY: `detect` found every feature that is enabled.
        unsafe { if VNNI { self.enabled_vnni(kernel) } else { self.enabled(kernel) } }
    }
    #[inline(always)]
    fn prefetch(self, address: *const u8) {
        // SAFETY: a prefetch is a hint and does not fault, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }

    #[inline(always)]
    fn splat(self, x: f32) -> F32 {
        let x = isa!(_mm256_set1_ps(x));
        F32(x, x)
    }
    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> F32 {
        // SAFETY: the array has the 64 bytes that are read; the token proves the instructions.
        unsafe { F32(_mm256_loadu_ps(from.as_ptr()), _mm256_loadu_ps(from.as_ptr().add(8))) }
    }
    #[inline(always)]
    fn load_partial(self, from: &[f32]) -> F32 {
        let mask = first_lanes(from.len());
        let start = from.as_ptr();
        // SAFETY: masked lanes are not read, and the mask has no lane beyond the slice.
        unsafe { F32(_mm256_maskload_ps(start, mask.0), _mm256_maskload_ps(start.wrapping_add(8), mask.1)) }
    }
    #[inline(always)]
    fn load_bf16(self, from: &[bf16; LANES]) -> F32 {
        // SAFETY: the array has the 32 bytes that are read; the token proves the instructions.
        let halves = unsafe {
            let start: *const __m128i = from.as_ptr().cast();
            I32(
                _mm256_cvtepu16_epi32(_mm_loadu_si128(start)),
                _mm256_cvtepu16_epi32(_mm_loadu_si128(start.add(1))),
            )
        };
        let bits = both!(I32, _mm256_slli_epi32::<16>(halves));
        both!(F32, _mm256_castsi256_ps(bits))
    }
    #[inline(always)]
    fn load_bf16_partial(self, from: &[bf16]) -> F32 {
        self.load_bf16(&padded(from, bf16::ZERO))
    }
    #[inline(always)]
    fn load_f16(self, from: &[f16; LANES]) -> F32 {
        // SAFETY: the array has the 32 bytes that are read; the token proves the instructions.
        unsafe {
            let start: *const __m128i = from.as_ptr().cast();
            F32(_mm256_cvtph_ps(_mm_loadu_si128(start)), _mm256_cvtph_ps(_mm_loadu_si128(start.add(1))))
        }
    }
    #[inline(always)]
    fn load_f16_partial(self, from: &[f16]) -> F32 {
        self.load_f16(&padded(from, f16::ZERO))
    }
    #[inline(always)]
    fn store(self, x: F32, to: &mut [f32; LANES]) {
        // SAFETY: the array has the 64 bytes that are written; the token proves the instructions.
        unsafe {
            _mm256_storeu_ps(to.as_mut_ptr(), x.0);
            _mm256_storeu_ps(to.as_mut_ptr().add(8), x.1);
        }
    }
    #[inline(always)]
    fn store_partial(self, x: F32, to: &mut [f32]) {
        let mask = first_lanes(to.len());
        let start = to.as_mut_ptr();
        // SAFETY: masked lanes are not written, and the mask has no lane beyond the slice.
        unsafe {
            _mm256_maskstore_ps(start, mask.0, x.0);
            _mm256_maskstore_ps(start.wrapping_add(8), mask.1, x.1);
        }
    }
    #[inline(always)]
    fn store_bf16_partial(self, x: F32, to: &mut [bf16]) {
        #[inline(always)]
        fn narrow(x: __m256) -> __m256i {
            isa!({
                let bits = _mm256_castps_si256(x);
                let odd = _mm256_and_si256(_mm256_srli_epi32::<16>(bits), _mm256_set1_epi32(1));
                let rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
                let quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x0040_0000));
                let nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(x, x));
                _mm256_srli_epi32::<16>(_mm256_blendv_epi8(rounded, quiet, nan))
            })
        }
        let (low, high) = (narrow(x.0), narrow(x.1));
        // The pack works on 128-bit lanes, which the permutation puts in order.
        let packed = isa!(_mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi32(low, high)));
        let mut lanes = [bf16::ZERO; LANES];
        // SAFETY: the array has the 32 bytes that are written; the token proves the instruction.
        unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), packed) };
        store_first(&lanes, to);
    }
    #[inline(always)]
    fn store_f16_partial(self, x: F32, to: &mut [f16]) {
        let mut lanes = [f16::ZERO; LANES];
        // SAFETY: the array has the 32 bytes that are written; the token proves the instructions.
        unsafe {
            let start: *mut __m128i = lanes.as_mut_ptr().cast();
            _mm_storeu_si128(start, _mm256_cvtps_ph::<{ _MM_FROUND_TO_NEAREST_INT }>(x.0));
            _mm_storeu_si128(start.add(1), _mm256_cvtps_ph::<{ _MM_FROUND_TO_NEAREST_INT }>(x.1));
        }
        store_first(&lanes, to);
    }

    #[inline(always)]
    fn add(self, a: F32, b: F32) -> F32 {
        both!(F32, _mm256_add_ps(a, b))
    }
    #[inline(always)]
    fn sub(self, a: F32, b: F32) -> F32 {
        both!(F32, _mm256_sub_ps(a, b))
    }
    #[inline(always)]
    fn mul(self, a: F32, b: F32) -> F32 {
        both!(F32, _mm256_mul_ps(a, b))
    }
    #[inline(always)]
    fn div(self, a: F32, b: F32) -> F32 {
        both!(F32, _mm256_div_ps(a, b))
    }
    #[inline(always)]
    fn mul_add(self, a: F32, b: F32, c: F32) -> F32 {
        both!(F32, _mm256_fmadd_ps(a, b, c))
    }
    #[inline(always)]
    fn max(self, a: F32, b: F32) -> F32 {
        both!(F32, _mm256_max_ps(a, b))
    }
    #[inline(always)]
    fn min(self, a: F32, b: F32) -> F32 {
        both!(F32, _mm256_min_ps(a, b))
    }
    #[inline(always)]
    fn abs(self, x: F32) -> F32 {
        let sign = self.splat(-0.0);
        both!(F32, _mm256_andnot_ps(sign, x))
    }
    #[inline(always)]
    fn round(self, x: F32) -> F32 {
        both!(F32, _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(x))
    }
    #[inline(always)]
    fn scale_by_power(self, x: F32, n: F32) -> F32 {
        // In two steps, since 2^n alone may leave f32; the first is exact for every x the contract allows.
        let n = self.to_i32(n);
        let first = both!(I32, _mm256_srai_epi32::<1>(n));
        self.mul(self.mul(x, power_of_two(first)), power_of_two(self.sub_i32(n, first)))
    }

    #[inline(always)]
    fn less(self, a: F32, b: F32) -> Mask {
        mask_of(both!(F32, _mm256_cmp_ps::<_CMP_LT_OQ>(a, b)))
    }
    #[inline(always)]
    fn equal(self, a: F32, b: F32) -> Mask {
        mask_of(both!(F32, _mm256_cmp_ps::<_CMP_EQ_OQ>(a, b)))
    }
    #[inline(always)]
    fn select(self, mask: Mask, yes: F32, no: F32) -> F32 {
        let lanes = I32(lanes_of(mask, 0), lanes_of(mask, 8));
        let lanes = both!(F32, _mm256_castsi256_ps(lanes));
        both!(F32, _mm256_blendv_ps(no, yes, lanes))
    }
    #[inline(always)]
    fn sum(self, x: F32) -> f32 {
        tree!(x, _mm256_add_ps, _mm_add_ps)
    }
    #[inline(always)]
    fn max_lane(self, x: F32) -> f32 {
        tree!(x, _mm256_max_ps, _mm_max_ps)
    }

    #[inline(always)]
    fn splat_i32(self, x: i32) -> I32 {
        let x = isa!(_mm256_set1_epi32(x));
        I32(x, x)
    }
    #[inline(always)]
    fn load_i32(self, from: &[i32; LANES]) -> I32 {
        self.load_bytes(bytemuck::cast_ref(from))
    }
    #[inline(always)]
    fn load_bytes(self, from: &[u8; 4 * LANES]) -> I32 {
        // SAFETY: the array has the 64 bytes that are read; the token proves the instructions.
        unsafe {
            let start: *const __m256i = from.as_ptr().cast();
            I32(_mm256_loadu_si256(start), _mm256_loadu_si256(start.add(1)))
        }
    }
    #[inline(always)]
    fn load_i8_partial(self, from: &[i8]) -> I32 {
        let lanes = padded(from, 0);
        // SAFETY: the array has the 16 bytes that are read; the token proves the instructions.
        unsafe {
            let bytes = _mm_loadu_si128(lanes.as_ptr().cast());
            I32(_mm256_cvtepi8_epi32(bytes), _mm256_cvtepi8_epi32(_mm_srli_si128::<8>(bytes)))
        }
    }
    #[inline(always)]
    fn store_i32(self, x: I32, to: &mut [i32; LANES]) {
        // SAFETY: the array has the 64 bytes that are written; the token proves the instructions.
        unsafe {
            let start: *mut __m256i = to.as_mut_ptr().cast();
            _mm256_storeu_si256(start, x.0);
            _mm256_storeu_si256(start.add(1), x.1);
        }
    }
    #[inline(always)]
    fn store_i32_partial(self, x: I32, to: &mut [i32]) {
        let mask = first_lanes(to.len());
        let start = to.as_mut_ptr();
        // SAFETY: masked lanes are not written, and the mask has no lane beyond the slice.
        unsafe {
            _mm256_maskstore_epi32(start, mask.0, x.0);
            _mm256_maskstore_epi32(start.wrapping_add(8), mask.1, x.1);
        }
    }
    #[inline(always)]
    fn store_i8_partial(self, x: I32, to: &mut [i8]) {
        let mut lanes = [0; LANES];
        // SAFETY: the array has the 16 bytes that are written; the token proves the instructions.
        unsafe {
            // The pack works on 128-bit lanes, which the permutation puts in order.
            let words = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi32(x.0, x.1));
            let bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256::<1>(words));
            _mm_storeu_si128(lanes.as_mut_ptr().cast(), bytes);
        }
        store_first(&lanes, to);
    }
    #[inline(always)]
    fn add_i32(self, a: I32, b: I32) -> I32 {
        both!(I32, _mm256_add_epi32(a, b))
    }
    #[inline(always)]
    fn sub_i32(self, a: I32, b: I32) -> I32 {
        both!(I32, _mm256_sub_epi32(a, b))
    }
    #[inline(always)]
    fn and(self, a: I32, b: I32) -> I32 {
        both!(I32, _mm256_and_si256(a, b))
    }
    #[inline(always)]
    fn shift_left<const N: u32>(self, a: I32) -> I32 {
        let count = isa!(_mm_cvtsi32_si128(N as i32));
        I32(isa!(_mm256_sll_epi32(a.0, count)), isa!(_mm256_sll_epi32(a.1, count)))
    }
    #[inline(always)]
    fn shift_right<const N: u32>(self, a: I32) -> I32 {
        let count = isa!(_mm_cvtsi32_si128(N as i32));
        I32(isa!(_mm256_srl_epi32(a.0, count)), isa!(_mm256_srl_epi32(a.1, count)))
    }
    #[inline(always)]
    fn sum_i32(self, x: I32) -> i32 {
        isa!({
            let x = _mm256_add_epi32(x.0, x.1);
            let x = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256::<1>(x));
            let x = _mm_add_epi32(x, _mm_shuffle_epi32::<0b01_00_11_10>(x));
            _mm_cvtsi128_si32(_mm_add_epi32(x, _mm_shuffle_epi32::<0b10_11_00_01>(x)))
        })
    }
    #[inline(always)]
    fn dot_u8_i8(self, acc: I32, u: I32, s: I32) -> I32 {
        if VNNI {
            both!(I32, _mm256_dpbusd_avx_epi32(acc, u, s))
        } else {
            I32(dot_u8_i8(acc.0, u.0, s.0), dot_u8_i8(acc.1, u.1, s.1))
        }
    }

    #[inline(always)]
    fn to_i32(self, x: F32) -> I32 {
        both!(I32, _mm256_cvtps_epi32(x))
    }
    #[inline(always)]
    fn to_f32(self, x: I32) -> F32 {
        both!(F32, _mm256_cvtepi32_ps(x))
    }
    #[inline(always)]
    fn to_bits(self, x: F32) -> I32 {
        both!(I32, _mm256_castps_si256(x))
    }
    #[inline(always)]
    fn of_bits(self, x: I32) -> F32 {
        both!(F32, _mm256_castsi256_ps(x))
    }
}

/// The lanes whose sign bit is set.
#[inline(always)]
fn mask_of(lanes: F32) -> Mask {
    isa!((_mm256_movemask_ps(lanes.0) | _mm256_movemask_ps(lanes.1) << 8) as Mask)
}
