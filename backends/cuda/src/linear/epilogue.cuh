// What happens to a product on its way out. Every kernel of the family ends in it, so whichever runs, the bits are the same:
//
//     y = sum * w_scale, y * x_scale, y + outliers, y + bias, activation or gate, soft-cap, y * factor, y + residual, rounding
//
// each operation rounded by itself.
#pragma once
#include "functions.cuh"
#include "linear/elements.cuh"

constexpr i32 NO_FUNCTION = -1;

// A kernel's parameter: `call.rs` passes the same fields in the same order.
struct Epilogue {
    // Of channels and rows; null where nothing is multiplied with.
    const f32 *w_scales, *x_scales;
    const void* x_outliers;
    const f32 *w_outliers, *bias;
    // Of the result's type; null where there is none.
    const void* residual;
    void* out;
    i64 x_scales_stride, x_outliers_stride, residual_stride, out_stride;
    // Columns of the result. `gated`: the ups' channels follow the gates', so many later.
    i32 results, gated, function, outliers, outliers_type, out_type, output_zero;
    // `soft_cap` is 0 where there is none.
    f32 output_scale, soft_cap, factor;
};

// What a channel multiplies with and adds, read once for all of its rows.
struct Channel {
    f32 scale, bias;
};

DEVICE Channel channel_of(const Epilogue& after, i64 channel) {
    return {after.w_scales == nullptr ? 1.0f : after.w_scales[channel], after.bias == nullptr ? 0.0f : after.bias[channel]};
}

// Of a sum, what comes before the activation. `x_factor` multiplies the scale of the row.
DEVICE f32 scale_sum(const Epilogue& after, f32 y, i64 row, i64 channel, const Channel& of, f32 x_factor = 1.0f) {
    if (after.w_scales != nullptr) y = __fmul_rn(y, of.scale);
    if (after.x_scales != nullptr) y = __fmul_rn(y, __fmul_rn(after.x_scales[row * after.x_scales_stride], x_factor));
    if (after.outliers > 0) {
        f32 chain = 0.0f;
#pragma unroll 1
        for (i32 i = 0; i < after.outliers; i++) {
            const f32 x = load_float(after.x_outliers, row * after.x_outliers_stride + i, after.outliers_type);
            chain = fmaf(x, after.w_outliers[channel * after.outliers + i], chain);
        }
        y = __fadd_rn(y, chain);
    }
    return after.bias == nullptr ? y : __fadd_rn(y, of.bias);
}

// Finishes and stores a result; `up` counts where the layer is gated.
DEVICE void store_finished(const Epilogue& after, f32 y, f32 up, i64 row, i64 result) {
    if (after.function != NO_FUNCTION) y = activate(after.function, y);
    if (after.gated) y = __fmul_rn(y, up);
    if (after.soft_cap > 0.0f) y = __fmul_rn(after.soft_cap, tanhf(y / after.soft_cap));
    y = __fmul_rn(y, after.factor);
    if (after.residual != nullptr) {
        y = __fadd_rn(y, load_float(after.residual, row * after.residual_stride + result, after.out_type));
    }
    store_result(after.out, row * after.out_stride + result, after.out_type, y, after.output_scale, after.output_zero);
}

// Stores a sum of integers as it is.
DEVICE void store_bare(const Epilogue& after, u32 sum, i64 row, i64 result) {
    static_cast<i32*>(after.out)[row * after.out_stride + result] = static_cast<i32>(sum);
}
