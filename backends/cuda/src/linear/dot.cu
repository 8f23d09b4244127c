// A linear layer of any format: a warp computes one result, its lanes take 16 columns each in turn, and what they have is
// joined in one order. Types are told at run time: one program serves every format.
//
//     y = sum over k of x * w, then: scales, outliers, bias, activation or gate, soft-cap, residual, rounding
//
// Sums of integers are exact, modulo 2^32: of all of K where no scale changes along it, else of steps within which none does.
// Terms of steps are added in ascending K, each operation rounded by itself.

#include "functions.cuh"
#include "groups.cuh"

// The types, as `layer.rs` numbers them.
enum Type : i32 { TYPE_F32, TYPE_F16, TYPE_BF16, TYPE_I8, TYPE_U8, TYPE_I32, TYPE_I4 };
enum Offset : i32 { NO_OFFSET, ZERO_POINTS, MINIMA };
// Columns that a lane takes together: no group of weights or activations ends within.
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
    // Columns within which no scale of integers times integers changes; 0 where none does along K.
    i32 step;
    // Whether weights have a scale a channel, which is multiplied with after all of K.
    i32 channel_scales;
    // What multiplies the scale of the row, where that is one.
    f32 x_factor;
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

// The scales of a row and a channel, and the columns in float.
DEVICE f32 finish(const Operands& of, const Sum& sum, i64 row, i64 channel, const f32* bias) {
    f32 y = sum.scaled;
    if (of.x_type >= TYPE_I8) {
        if (of.step == 0) y = static_cast<f32>(static_cast<i32>(sum.whole));
        if (of.channel_scales) y = __fmul_rn(y, of.w_scales[channel]);
        if (of.x_group == 0) y = __fmul_rn(y, __fmul_rn(of.x_scales[row * of.x_scales_stride], of.x_factor));
    }
    if (of.outliers > 0) {
        f32 chain = 0.0f;
#pragma unroll 1
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

// A result with its bias and its gate or activation; false where it is the sum itself, which is stored.
DEVICE bool result_of(f32& y, const Operands& of, i64 row, i64 result, i32 results, i32 gated, i32 function, const f32* bias,
                      void* out, i64 at, i32 out_type) {
    y = 0.0f;
    // Gates, then ups: one body serves both.
#pragma unroll 1
    for (i32 half = 0; half <= gated; half++) {
        const i64 channel = result + static_cast<i64>(half) * results;
        const Sum sum = multiply(of, row, channel);
        if (out_type == TYPE_I32) {
            if (threadIdx.x % 32 == 0) static_cast<i32*>(out)[at] = static_cast<i32>(sum.whole);
            return false;
        }
        const f32 value = finish(of, sum, row, channel, bias);
        y = half == 1 ? __fmul_rn(y, value) : function == NO_FUNCTION ? value : activate(function, value);
    }
    return true;
}

// Results of a row, a warp each; rows along x of the grid, blocks of results along y. `gated`: the ups' channels follow the
// gates', `results` later. `soft_cap` is 0 where there is none. With `adapters`, of each row, only the rows of
// one of them: products times its scale, `residual` may be `out`.
KERNEL void __launch_bounds__(BLOCK, 4)
    linear_dot(const void* x, const void* w, const f32* x_scales, const f32* w_scales, const i32* x_zeros, const void* offsets,
               const u8* kept, const void* x_outliers, const f32* w_outliers, const f32* bias, const void* residual, void* out,
               i64 x_stride, i64 w_stride, i64 x_scales_stride, i64 x_outliers_stride, i64 residual_stride, i64 out_stride,
               i32 results, i32 k, i32 x_type, i32 w_type, i32 out_type, i32 offset, i32 groups, i32 w_group, i32 x_group,
               i32 outliers, i32 outliers_type, i32 step, i32 channel_scales, i32 gated, i32 function, i32 output_zero,
               f32 output_scale, f32 soft_cap, const i32* adapters, i32 adapter, f32 adapter_scale) {
    const i64 row = blockIdx.x, result = static_cast<i64>(blockIdx.y) * (BLOCK / 32) + threadIdx.x / 32;
    // A warp as a whole.
    if (result >= results || (adapters != nullptr && adapters[row] != adapter)) return;
    const Operands of = {x, w, x_scales, w_scales, x_zeros, offsets, kept, x_outliers, w_outliers,
                         x_stride, w_stride, x_scales_stride, x_outliers_stride, k, x_type, w_type, offset, groups, w_group,
                         x_group, outliers, outliers_type, step, channel_scales, 1.0f};
    const i64 at = row * out_stride + result;
    f32 y;
    if (!result_of(y, of, row, result, results, gated, function, bias, out, at, out_type)) return;
    if (threadIdx.x % 32 != 0) return;
    if (soft_cap > 0.0f) y = __fmul_rn(soft_cap, tanhf(y / soft_cap));
    if (adapters != nullptr) y = __fmul_rn(y, adapter_scale);
    if (residual != nullptr) y = __fadd_rn(y, load_float(residual, row * residual_stride + result, out_type));
    store_result(out, at, out_type, y, output_scale, output_zero);
}

// Packed weights of some groups, of one layout; `MOST_GROUPS` of layer.rs.
struct GroupWeights {
    const u8* of[256];
};

// Likewise for rows of groups, of those from `first_group` on whose weights are here. With `gathered`, rows are tokens of x;
// `x_factors` multiply the tokens' scales, slot by slot. With `own_scales` one scale of all rows is one of each group's.
KERNEL void __launch_bounds__(BLOCK, 4)
    grouped_dot(const __grid_constant__ GroupWeights weights, const void* x, const f32* x_scales, const i32* x_zeros,
                const void* x_outliers, const f32* x_factors, const f32* bias, void* out, i64 x_stride, i64 w_stride,
                i64 x_scales_stride, i64 x_outliers_stride, i64 x_factors_stride, i64 out_stride, i64 scales_at, i64 offsets_at,
                i64 kept_at, i64 outliers_at, i32 results, i32 k, i32 x_type, i32 w_type, i32 out_type, i32 offset, i32 groups,
                i32 w_group, i32 x_group, i32 outliers, i32 outliers_type, i32 step, i32 channel_scales, i32 gated, i32 function,
                i32 first_group, i32 weights_count, i32 gathered, i32 own_scales, GROUPS_PARAMETERS) {
    const i64 row = blockIdx.x, result = static_cast<i64>(blockIdx.y) * (BLOCK / 32) + threadIdx.x / 32;
    // A warp as a whole, here and below.
    if (result >= results) return;
    const Groups rows = GROUPS_ARGUMENTS;
    const i32 group = rows.group_of(row);
    if (group < first_group || group - first_group >= weights_count) return;
    const i64 slot = gathered ? rows.slot_of(row) : row, x_row = gathered ? slot / rows.top_k : row;
    const u8* w = weights.of[group - first_group];
    const i64 own = own_scales ? group : 0;
    const f32 factor = x_factors == nullptr ? 1.0f : x_factors[slot / rows.top_k * x_factors_stride + slot % rows.top_k];
    // A part that there is not begins at 0, where weights do.
    const auto part = [&](i64 at) { return at == 0 ? nullptr : w + at; };
    const Operands of = {x, w, x_scales == nullptr ? nullptr : x_scales + own, reinterpret_cast<const f32*>(part(scales_at)),
                         x_zeros == nullptr ? nullptr : x_zeros + own, part(offsets_at), part(kept_at), x_outliers,
                         reinterpret_cast<const f32*>(part(outliers_at)), x_stride, w_stride, x_scales_stride,
                         x_outliers_stride, k, x_type, w_type, offset, groups, w_group, x_group, outliers, outliers_type, step,
                         channel_scales, factor};
    if (bias != nullptr) bias += static_cast<i64>(group) * results * (1 + gated);
    const i64 at = row * out_stride + result;
    f32 y;
    if (!result_of(y, of, x_row, result, results, gated, function, bias, out, at, out_type)) return;
    if (threadIdx.x % 32 == 0) store_result(out, at, out_type, y, 1.0f, 0);
}
