// A linear layer of any format: a warp computes one result, its lanes take steps of 16 columns in turn, and what they have is
// joined in one order. Types are told at run time: one program serves every format.
//
//     y = sum over k of x * w, then: scales, outliers, bias, activation or gate, soft-cap, residual, rounding
//
// Integers times integers: a step's sum is exact. Where no scale changes along K the whole sum is, modulo 2^32.

#include "functions.cuh"
#include "team.cuh"

// The types, as `layer.rs` numbers them.
enum Type : i32 { TYPE_F32, TYPE_F16, TYPE_BF16, TYPE_I8, TYPE_U8, TYPE_I32, TYPE_I4 };
enum Offset : i32 { NO_OFFSET, ZERO_POINTS, MINIMA };
constexpr i32 STEP = 16;
constexpr i32 NO_FUNCTION = -1;

DEVICE f32 load_float(const void* from, i64 at, i32 type) {
    if (type == TYPE_F32) return static_cast<const f32*>(from)[at];
    if (type == TYPE_F16) return widen(static_cast<const f16*>(from)[at]);
    return widen(static_cast<const bf16*>(from)[at]);
}

// Of I4, two values a byte: the first in its low half.
DEVICE i32 load_integer(const void* from, i64 at, i32 type) {
    if (type == TYPE_I8) return static_cast<const i8*>(from)[at];
    const i32 byte = static_cast<const u8*>(from)[type == TYPE_I4 ? at / 2 : at];
    return type == TYPE_I4 ? (byte >> (at % 2 * 4)) & 15 : byte;
}

// What is multiplied, and with what.
struct Operands {
    const void *x, *w;
    const f32 *x_scales, *w_scales;
    const i32* x_zeros;
    // Zero points as I32, or minima as F32.
    const void* offsets;
    // A byte a column, 0 for outlier columns; null where all count.
    const u8* kept;
    const void* x_outliers;
    const f32* w_outliers;
    i64 x_stride, w_stride, x_scales_stride, x_outliers_stride;
    i32 k, x_type, w_type, offset, groups, w_group, x_group, outliers, outliers_type;
    // Whether scales change along K.
    i32 grouped;
};

// The sum of a result: exact in `whole`, or in `scaled` with the scales that change along K.
struct Sum {
    u32 whole;
    f32 scaled;
};

DEVICE Sum multiply(const Operands& of, i64 row, i64 channel) {
    const i32 lane = threadIdx.x % 32;
    const bool integers = of.x_type >= TYPE_I8, float_weights = of.w_type < TYPE_I8;
    const i32 x_zero = of.x_zeros == nullptr ? 0 : of.x_zeros[row * of.x_scales_stride];
    Sum sum = {0u, 0.0f};
    for (i32 start = STEP * lane; start < of.k; start += STEP * 32) {
        const i32 end = min(start + STEP, of.k);
        const i64 x_at = row * of.x_stride, w_at = channel * of.w_stride;
        if (float_weights) {
            for (i32 k = start; k < end; k++) {
                sum.scaled = fmaf(load_float(of.x, x_at + k, of.x_type), load_float(of.w, w_at + k, of.w_type), sum.scaled);
            }
            continue;
        }
        const i64 factor = channel * of.groups + start / of.w_group;
        const f32 scale = of.w_scales[factor];
        const i32 zero = of.offset == ZERO_POINTS ? static_cast<const i32*>(of.offsets)[factor]
                                                  : of.w_type == TYPE_I4 && of.offset == NO_OFFSET ? 8 : 0;
        const f32 minimum = of.offset == MINIMA ? static_cast<const f32*>(of.offsets)[factor] : 0.0f;
        if (!integers) {
            for (i32 k = start; k < end; k++) {
                const f32 q = static_cast<f32>(load_integer(of.w, w_at + k, of.w_type) - zero);
                sum.scaled = fmaf(load_float(of.x, x_at + k, of.x_type), fmaf(q, scale, minimum), sum.scaled);
            }
            continue;
        }
        // Unsigned: it wraps.
        u32 exact = 0, x_sum = 0;
        for (i32 k = start; k < end; k++) {
            const u32 q = static_cast<u32>(load_integer(of.x, x_at + k, of.x_type)) - static_cast<u32>(x_zero);
            exact += q * static_cast<u32>(load_integer(of.w, w_at + k, of.w_type) - zero);
            if (of.kept == nullptr || of.kept[k] != 0) x_sum += q;
        }
        if (of.grouped) {
            const f32 x_scale = of.x_group == 0 ? 1.0f : of.x_scales[row * of.x_scales_stride + start / of.x_group];
            f32 term = static_cast<f32>(static_cast<i32>(exact)) * scale;
            if (of.offset == MINIMA) term = fmaf(static_cast<f32>(static_cast<i32>(x_sum)), minimum, term);
            sum.scaled = fmaf(term, x_scale, sum.scaled);
        } else {
            sum.whole += exact;
        }
    }
    if (integers && !of.grouped) {
        sum.whole = join_warp(sum.whole, [](u32 a, u32 b) { return a + b; });
    } else {
        sum.scaled = join_warp(sum.scaled, Add());
    }
    return sum;
}

// The scales of a row and a channel, and the columns in float.
DEVICE f32 finish(const Operands& of, const Sum& sum, i64 row, i64 channel, const f32* bias) {
    f32 y = sum.scaled;
    if (of.x_type >= TYPE_I8) {
        if (!of.grouped) y = __fmul_rn(static_cast<f32>(static_cast<i32>(sum.whole)), of.w_scales[channel]);
        if (of.x_group == 0) y = __fmul_rn(y, of.x_scales[row * of.x_scales_stride]);
    }
    if (of.outliers > 0) {
        f32 chain = 0.0f;
        for (i32 i = 0; i < of.outliers; i++) {
            const f32 x = load_float(of.x_outliers, row * of.x_outliers_stride + i, of.outliers_type);
            chain = fmaf(x, of.w_outliers[channel * of.outliers + i], chain);
        }
        y = __fadd_rn(y, chain);
    }
    return bias == nullptr ? y : __fadd_rn(y, bias[channel]);
}

DEVICE void store_result(void* out, i64 at, i32 type, f32 y, f32 output_scale, i32 output_zero) {
    if (type == TYPE_F32) {
        static_cast<f32*>(out)[at] = y;
    } else if (type == TYPE_F16) {
        static_cast<f16*>(out)[at] = narrow<f16>(y);
    } else if (type == TYPE_BF16) {
        static_cast<bf16*>(out)[at] = narrow<bf16>(y);
    } else {
        const f32 steps = rintf(y / output_scale);
        // NaN counts as 0.
        const i32 q = steps == steps ? static_cast<i32>(fminf(fmaxf(steps, -1024.0f), 1024.0f)) + output_zero : output_zero;
        const i32 least = type == TYPE_I8 ? -128 : 0;
        static_cast<u8*>(out)[at] = static_cast<u8>(min(max(q, least), least + 255));
    }
}

// Results of a row, a warp each; rows along x of the grid, blocks of results along y. `gated`: the ups' channels follow the
// gates', `results` later. `soft_cap` is 0 where there is none.
KERNEL void __launch_bounds__(BLOCK)
    linear_dot(const void* x, const void* w, const f32* x_scales, const f32* w_scales, const i32* x_zeros, const void* offsets,
               const u8* kept, const void* x_outliers, const f32* w_outliers, const f32* bias, const void* residual, void* out,
               i64 x_stride, i64 w_stride, i64 x_scales_stride, i64 x_outliers_stride, i64 residual_stride, i64 out_stride,
               i32 results, i32 k, i32 x_type, i32 w_type, i32 out_type, i32 offset, i32 groups, i32 w_group, i32 x_group,
               i32 outliers, i32 outliers_type, i32 grouped, i32 gated, i32 function, i32 output_zero, f32 output_scale,
               f32 soft_cap) {
    const i64 row = blockIdx.x, result = static_cast<i64>(blockIdx.y) * (BLOCK / 32) + threadIdx.x / 32;
    // A warp as a whole.
    if (result >= results) return;
    const Operands of = {x, w, x_scales, w_scales, x_zeros, offsets, kept, x_outliers, w_outliers,
                         x_stride, w_stride, x_scales_stride, x_outliers_stride, k, x_type, w_type, offset, groups, w_group,
                         x_group, outliers, outliers_type, grouped};
    const Sum sum = multiply(of, row, result);
    const Sum up = gated ? multiply(of, row, results + result) : Sum{0u, 0.0f};
    if (threadIdx.x % 32 != 0) return;
    const i64 at = row * out_stride + result;
    if (out_type == TYPE_I32) {
        static_cast<i32*>(out)[at] = static_cast<i32>(sum.whole);
        return;
    }
    f32 y = finish(of, sum, row, result, bias);
    if (function != NO_FUNCTION) y = activate(function, y);
    if (gated) y = __fmul_rn(y, finish(of, up, row, results + result, bias));
    if (soft_cap > 0.0f) y = __fmul_rn(soft_cap, tanhf(y / soft_cap));
    if (residual != nullptr) y = __fadd_rn(y, load_float(residual, row * residual_stride + result, out_type));
    store_result(out, at, out_type, y, output_scale, output_zero);
}
