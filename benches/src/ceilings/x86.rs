//! Multiply-adds in registers only: enough sums in flight that none waits for the one before.

use std::{arch::x86_64::*, hint::black_box};

/// Does many multiply-adds and returns how many operations they were, two each.
type Work = fn() -> f64;

/// Rounds of a call.
const ROUNDS: usize = 20_000;

/// A loop over `$sums` accumulators, as a function that one instruction set compiles.
macro_rules! probe {
    ($name:ident, $features:literal, $sums:literal, $zero:expr, $one:expr, $step:expr, $lanes:literal) => {
        pub(super) fn $name() -> f64 {
            #[target_feature(enable = $features)]
            fn sums() {
                let (a, b) = (black_box($one), black_box($one));
                let mut acc = [$zero; $sums];
                for _ in 0..ROUNDS {
                    for acc in &mut acc {
                        *acc = $step(*acc, a, b);
                    }
                }
                black_box(acc);
            }
            // SAFETY: called only where the CPU was found to have these features.
            unsafe { sums() };
            2.0 * ($lanes * $sums * ROUNDS) as f64
        }
    };
}

probe!(
    int8_512,
    "avx512f,avx512vnni",
    16,
    _mm512_setzero_si512(),
    _mm512_set1_epi8(1),
    _mm512_dpbusd_epi32,
    64
);
probe!(
    int8_vnni,
    "avx2,avxvnni",
    12,
    _mm256_setzero_si256(),
    _mm256_set1_epi8(1),
    _mm256_dpbusd_avx_epi32,
    32
);
probe!(
    int8_256,
    "avx2",
    10,
    _mm256_setzero_si256(),
    _mm256_set1_epi16(1),
    |acc, a, b| _mm256_add_epi32(acc, _mm256_madd_epi16(a, b)),
    16
);
probe!(
    f32_512,
    "avx512f",
    16,
    _mm512_setzero_ps(),
    _mm512_set1_ps(1.0),
    |acc, a, b| _mm512_fmadd_ps(a, b, acc),
    16
);
probe!(
    f32_256,
    "avx2,fma",
    12,
    _mm256_setzero_ps(),
    _mm256_set1_ps(1.0),
    |acc, a, b| _mm256_fmadd_ps(a, b, acc),
    8
);
probe!(bf16_512, "avx512f,avx512bf16", 16, _mm512_setzero_ps(), ones_bf16(), _mm512_dpbf16_ps, 32);

/// 32 lanes of 1 in BF16.
#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
fn ones_bf16() -> __m512bh {
    _mm512_cvtne2ps_pbh(_mm512_set1_ps(1.0), _mm512_set1_ps(1.0))
}

pub(super) fn int8() -> Option<Work> {
    if is_x86_feature_detected!("avx512vnni") {
        Some(int8_512)
    } else if is_x86_feature_detected!("avxvnni") {
        Some(int8_vnni)
    } else {
        is_x86_feature_detected!("avx2").then_some(int8_256)
    }
}

pub(super) fn bf16() -> Option<Work> {
    is_x86_feature_detected!("avx512bf16").then_some(bf16_512)
}

pub(super) fn f32() -> Option<Work> {
    if is_x86_feature_detected!("avx512f") {
        Some(f32_512)
    } else {
        (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")).then_some(f32_256)
    }
}
