// Products of any format: a warp computes one result, its lanes take 16 columns each in turn, and what they have is joined in
// one order. Types are told at run time: one program serves every format.
//
//     y = sum over k of x * w, then: scales, outliers, bias, activation or gate, soft-cap, residual, rounding
//
// Sums of integers are exact, modulo 2^32: of all of K where no scale changes along it, else of steps within which none does.
// Terms of steps are added in ascending K, each operation rounded by itself.

#pragma once
#include "linear/epilogue.cuh"
#include "team.cuh"

enum Offset : i32 { NO_OFFSET, ZERO_POINTS, MINIMA };
// Columns that a lane takes together: no group of weights or activations ends within.
constexpr i32 STEP = 16;

// Of I4, two values a byte: of 32 values the first 16 in its low half, the others in its high half.
DEVICE i32 load_integer(const void* from, i64 at, i32 type) {
    if (type == TYPE_I8) return static_cast<const i8*>(from)[at];
    const i32 byte = static_cast<const u8*>(from)[type == TYPE_I4 ? at / 32 * 16 + at % 16 : at];
    return type == TYPE_I4 ? (byte >> (at / 16 % 2 * 4)) & 15 : byte;
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
    i64 x_stride, w_stride, x_scales_stride;
    i32 k, x_type, w_type, offset, groups, w_group, x_group;
    // Columns within which no scale of integers times integers changes; 0 where none does along K.
    i32 step;
    // Whether weights have a scale a channel, which is multiplied with after all of K.
    i32 channel_scales;
};

// The sum of a result: exact in `whole`, or in `scaled` with the scales that change along K. All lanes have it.
struct Sum {
    u32 whole;
    f32 scaled;
};

// The scale of a group of weights, and what is taken off its integers or added to its products.
struct Group {
    f32 scale, minimum;
    i32 zero;
};

DEVICE Group group_of(const Operands& of, i64 channel, i32 k) {
    const i64 at = channel * of.groups + k / of.w_group;
    Group group = {of.w_scales[at], 0.0f, of.w_type == TYPE_I4 && of.offset == NO_OFFSET ? 8 : 0};
    if (of.offset == ZERO_POINTS) group.zero = static_cast<const i32*>(of.offsets)[at];
    if (of.offset == MINIMA) group.minimum = static_cast<const f32*>(of.offsets)[at];
    return group;
}

// A chain of multiply-adds a lane; integer weights are dequantised, each operation rounded.
DEVICE f32 multiply_floats(const Operands& of, i64 row, i64 channel) {
    const i64 x_at = row * of.x_stride, w_at = channel * of.w_stride;
    f32 sum = 0.0f;
    for (i32 start = STEP * (threadIdx.x % 32); start < of.k; start += STEP * 32) {
        const i32 end = min(start + STEP, of.k);
        if (of.w_type < TYPE_I8) {
#pragma unroll 1
            for (i32 k = start; k < end; k++) {
                sum = fmaf(load_float(of.x, x_at + k, of.x_type), load_float(of.w, w_at + k, of.w_type), sum);
            }
            continue;
        }
        const Group group = group_of(of, channel, start);
#pragma unroll 1
        for (i32 k = start; k < end; k++) {
            const f32 product = __fmul_rn(static_cast<f32>(load_integer(of.w, w_at + k, of.w_type) - group.zero), group.scale);
            const f32 w = of.offset == MINIMA ? __fadd_rn(product, group.minimum) : product;
            sum = fmaf(load_float(of.x, x_at + k, of.x_type), w, sum);
        }
    }
    return join_warp(sum, Add());
}

// Sums of integers, zero points taken off. Unsigned: they wrap.
struct Exact {
    u32 products, x;
};

// Of columns `start` to `end`, by lane `part` of `parts`.
DEVICE Exact multiply_integers(const Operands& of, i64 row, i64 channel, i32 start, i32 end, i32 zero, i32 part, i32 parts) {
    const i64 x_at = row * of.x_stride, w_at = channel * of.w_stride;
    const i32 x_zero = of.x_zeros == nullptr ? 0 : of.x_zeros[row * of.x_scales_stride];
    Exact sums = {0u, 0u};
    for (i32 from = start + STEP * part; from < end; from += STEP * parts) {
        const i32 to = min(from + STEP, end);
#pragma unroll 1
        for (i32 k = from; k < to; k++) {
            const u32 q = static_cast<u32>(load_integer(of.x, x_at + k, of.x_type)) - static_cast<u32>(x_zero);
            sums.products += q * static_cast<u32>(load_integer(of.w, w_at + k, of.w_type) - zero);
            if (of.kept == nullptr || of.kept[k] != 0) sums.x += q;
        }
    }
    return sums;
}

// Steps in ascending K, several at a time: `parts` lanes share one.
DEVICE f32 multiply_steps(const Operands& of, i64 row, i64 channel) {
    const i32 lane = threadIdx.x % 32, steps = (of.k - 1) / of.step + 1;
    i32 parts = 1;
    while (parts < 32 && parts * STEP < of.step) parts *= 2;
    f32 sum = 0.0f;
    for (i32 first = 0; first < steps; first += 32 / parts) {
        const i32 step = first + lane / parts;
        Exact exact = {0u, 0u};
        Group group = {0.0f, 0.0f, 0};
        f32 x_scale = 0.0f;
        if (step < steps) {
            // Below K, or the last step.
            const i32 start = step * of.step, end = start + min(of.step, of.k - start);
            group = group_of(of, channel, start);
            if (of.x_group > 0) x_scale = of.x_scales[row * of.x_scales_stride + start / of.x_group];
            exact = multiply_integers(of, row, channel, start, end, group.zero, lane % parts, parts);
        }
#pragma unroll 1
        for (i32 distance = parts / 2; distance > 0; distance /= 2) {
            exact.products += __shfl_xor_sync(ALL_LANES, exact.products, distance);
            exact.x += __shfl_xor_sync(ALL_LANES, exact.x, distance);
        }
        f32 term = static_cast<f32>(static_cast<i32>(exact.products));
        // A channel's scale comes after the last step.
        if (!of.channel_scales) term = __fmul_rn(term, group.scale);
        if (of.offset == MINIMA) {
            term = __fadd_rn(term, __fmul_rn(static_cast<f32>(static_cast<i32>(exact.x)), group.minimum));
        }
        if (of.x_group > 0) term = __fmul_rn(term, x_scale);
#pragma unroll 1
        for (i32 next = 0; next < 32 / parts && first + next < steps; next++) {
            sum = __fadd_rn(sum, __shfl_sync(ALL_LANES, term, next * parts));
        }
    }
    return sum;
}

DEVICE Sum multiply(const Operands& of, i64 row, i64 channel) {
    if (of.x_type < TYPE_I8) return {0u, multiply_floats(of, row, channel)};
    if (of.step > 0) return {0u, multiply_steps(of, row, channel)};
    const i32 zero = of.offset == ZERO_POINTS ? static_cast<const i32*>(of.offsets)[channel] : 0;
    const u32 sum = multiply_integers(of, row, channel, 0, of.k, zero, threadIdx.x % 32, 32).products;
    return {join_warp(sum, [](u32 a, u32 b) { return a + b; }), 0.0f};
}

// A result of the row `x_row` of x, stored in the row `row` of the result. `x_factor` multiplies the scale of x's row.
DEVICE void dot_result(const Operands& of, const Epilogue& after, i64 x_row, i64 row, i64 result, f32 x_factor) {
    f32 y = 0.0f, up = 0.0f;
    // Gates, then ups: one body serves both.
#pragma unroll 1
    for (i32 half = 0; half <= after.gated; half++) {
        const i64 channel = result + static_cast<i64>(half) * after.results;
        const Sum sum = multiply(of, x_row, channel);
        if (after.out_type == TYPE_I32) {
            if (threadIdx.x % 32 == 0) store_bare(after, sum.whole, row, result);
            return;
        }
        const bool whole = of.x_type >= TYPE_I8 && of.step == 0;
        const f32 bare = whole ? static_cast<f32>(static_cast<i32>(sum.whole)) : sum.scaled;
        const f32 value = scale_sum(after, bare, x_row, channel, channel_of(after, channel), x_factor);
        if (half == 0) y = value;
        up = value;
    }
    if (threadIdx.x % 32 == 0) store_finished(after, y, up, row, result);
}
