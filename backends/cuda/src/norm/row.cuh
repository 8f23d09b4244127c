// Rows that a norm makes of rows of X, with a residual before or after it.
#pragma once
#include "team.cuh"

#define NORM_PARAMETERS                                                                                                      \
    const X *x, const X *residual, X *sum, const f32 *weight, const f32 *bias, i64 x_outer, i64 x_inner, i64 residual_outer, \
        i64 residual_inner, i64 sum_outer, i64 sum_inner, i64 weight_head, i64 bias_head, i64 columns_of_row, f32 eps,       \
        f32 weight_offset, i32 layer
#define NORM_ARGUMENTS                                                                                                       \
    {x,           residual,  sum,         weight,    bias, x_outer,       x_inner, residual_outer, residual_inner,           \
     sum_outer,   sum_inner, weight_head, bias_head, columns_of_row, eps, weight_offset, layer != 0}

DEVICE bool is_finite(f32 x) { return (__float_as_uint(x) & 0x7f800000u) != 0x7f800000u; }

struct NormedRow {
    const X *x, *residual;
    X* sum; // x + residual before the norm; null where there is no residual, or one after it
    const f32 *weight, *bias;
    i64 x_outer, x_inner, residual_outer, residual_inner, sum_outer, sum_inner, weight_head, bias_head, columns;
    f32 eps, weight_offset;
    bool layer;
    bool fours = false;
    // The row times this power of two,
    f32 by = 1.0f;
    // less this, times that.
    f32 mean = 0.0f, factor = 0.0f;

    // What is normalised: the sum with a residual as it is stored, where one comes before.
    DEVICE void four_of(f32 (&y)[4], i64 c, i64 end) const {
        const bool together = fours && c % 4 == 0;
        load_four(y, x, c, end, together);
        if (!sum) return;
        f32 other[4];
        load_four(other, residual, c, end, together);
#pragma unroll
        for (i32 i = 0; i < 4; i++) y[i] = widen(narrow<X>(y[i] + other[i]));
    }

    // The sum over the row of `of` an element, in four sums a thread.
    template <typename Of> DEVICE f32 total(const Team& team, Of of) const {
        f32 sums[4] = {};
        for (i64 c = 4 * team.lane; c < columns; c += 4 * team.lanes) {
            f32 y[4];
            four_of(y, c, columns);
#pragma unroll
            for (i32 i = 0; i < 4; i++) {
                if (c + i < columns) sums[i] = of(sums[i], y[i] * by);
            }
        }
        return team.join((sums[0] + sums[1]) + (sums[2] + sums[3]), Add{});
    }

    // Sets the mean; gives the mean square of what is around it.
    DEVICE f32 moments(const Team& team) {
        const f32 count = static_cast<f32>(columns);
        if (layer) mean = total(team, [](f32 sum, f32 y) { return sum + y; }) / count;
        const f32 middle = mean;
        return total(team, [middle](f32 sum, f32 y) { return fmaf(y - middle, y - middle, sum); }) / count;
    }

    DEVICE void open(i64 o, i64 i, const Team& team) {
        x += o * x_outer + i * x_inner;
        fours = has_fours(x);
        if (residual) {
            residual += o * residual_outer + i * residual_inner;
            fours = fours && has_fours(residual);
        }
        if (weight) weight += i * weight_head;
        if (bias) bias += i * bias_head;
        if (sum) {
            sum += o * sum_outer + i * sum_inner;
            const bool together = fours && has_fours(sum);
            for (i64 c = 4 * team.lane; c < columns; c += 4 * team.lanes) {
                f32 y[4];
                four_of(y, c, columns);
                store_four(sum, y, c, columns, together);
            }
        }
        // Squares of a row's elements may leave F32, or vanish beside an eps of next to nothing: then they are taken of the
        // row times a power of two.
        f32 square;
#pragma unroll 1
        while (true) {
            square = moments(team) + eps * by * by;
            if (by != 1.0f || (is_finite(square) && square >= 0x1p-100f)) break;
            by = is_finite(square) ? 0x1p+90f : 0x1p-100f;
        }
        factor = 1.0f / sqrtf(square);
    }

    DEVICE void four(f32 (&y)[4], i64 c, i64 end) const {
        four_of(y, c, end);
        f32 after[4];
        if (residual && !sum) load_four(after, residual, c, end, fours && c % 4 == 0);
#pragma unroll
        for (i32 i = 0; i < 4; i++) {
            if (c + i >= end) {
                y[i] = 0.0f;
                continue;
            }
            y[i] = (y[i] * by - mean) * factor;
            if (weight) {
                // Adding 0 would change the sign of -0.
                y[i] *= weight_offset == 0.0f ? weight[c + i] : weight[c + i] + weight_offset;
            }
            if (bias) y[i] += bias[c + i];
            if (residual && !sum) y[i] += after[i];
        }
    }
};
