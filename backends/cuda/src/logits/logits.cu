// Penalties, biases and masks on logits, in place. The table is `LogitsTable`. Every operation is
// rounded by itself, as the contract has it: none becomes part of a fused multiply-add.
#include "prelude.cuh"

constexpr i32 THREADS = 256;
constexpr f32 LARGEST = 0x1.fffffep+127f;
// Of the third word of a touched token.
constexpr u32 SEEN = 1, BIASED = 2, OUTPUTS_SHIFT = 2;

// A thread a token that penalties or biases touch: each token of a row comes once.
KERNEL void __launch_bounds__(THREADS) touch(f32* logits, const u32* table, i64 row_stride, i64 touched, i64 touched_start) {
    const i64 index = static_cast<i64>(blockIdx.x) * THREADS + threadIdx.x;
    if (index >= touched) return;
    const u32* asked = table + touched_start + 4 * index;
    const u32* penalties = table + 3ll * asked[0];
    f32* at = logits + asked[0] * row_stride + asked[1];
    const u32 what = asked[2];
    f32 x = *at;
    // No finite penalty and no finite bias changes NaN or infinity.
    if ((__float_as_uint(x) & 0x7f800000u) == 0x7f800000u) return;
    if (what & SEEN) {
        const f32 repetition = __uint_as_float(penalties[0]);
        x = x > 0.0f ? __fdiv_rn(x, repetition) : __fmul_rn(x, repetition);
        const u32 outputs = what >> OUTPUTS_SHIFT;
        if (outputs > 0) {
            x = __fsub_rn(x, __fmul_rn(__uint_as_float(penalties[2]), static_cast<f32>(outputs)));
            x = __fsub_rn(x, __uint_as_float(penalties[1]));
        }
    }
    if (what & BIASED) x = __fadd_rn(x, __uint_as_float(asked[3]));
    *at = x;
}

// A thread a token of the rows that have a mask: minus infinity where its bit is 0; at least the least finite number where
// it is 1.
KERNEL void __launch_bounds__(THREADS)
    mask(f32* logits, const u32* table, i64 row_stride, i64 vocabulary, i64 parts, i64 masked_start, i64 masks_start,
         i64 mask_words) {
    const i64 masked = blockIdx.x / parts;
    const i64 token = blockIdx.x % parts * THREADS + threadIdx.x;
    if (token >= vocabulary) return;
    f32* at = logits + table[masked_start + masked] * row_stride + token;
    const u32 word = table[masks_start + masked * mask_words + token / 32];
    if ((word >> (token % 32) & 1u) == 0) {
        *at = __uint_as_float(0xff800000u);
    } else if (!(*at >= -LARGEST)) {
        *at = -LARGEST;
    }
}
