// What becomes of a part's scores: weights, a warp a row.
#pragma once
#include "attention/state.cuh"
#include "attention/visible.cuh"
#include "team.cuh"

// In the place of a score, and then of a weight: the row does not see the position. Real ones have other bits.
constexpr u32 UNSEEN = 0xffffffffu;

DEVICE u32 bits_of(f32 score) { return isnan(score) ? 0x7fc00000u : __float_as_uint(score); }

struct Greater {
    DEVICE f32 operator()(f32 a, f32 b) const { return fmaxf(a, b); }
};

// Makes scores of the positions `within` weights; gives the part's state but for the values. All lanes have it.
DEVICE Known weigh(u32* scores, const Positions& within, i32 lane) {
    const i32 from = within.first / 32 * 32 + lane;
    f32 most = LOWEST;
    for (i32 j = from; j < within.end; j += 32) {
        if (j >= within.first && scores[j] != UNSEEN) most = fmaxf(most, __uint_as_float(scores[j]));
    }
    most = join_warp(most, Greater());
    f32 sum = 0.0f;
    for (i32 j = from; j < within.end; j += 32) {
        if (j < within.first || scores[j] == UNSEEN) continue;
        const f32 weight = expf(__uint_as_float(scores[j]) - most);
        scores[j] = __float_as_uint(weight);
        sum += weight;
    }
    return {most, join_warp(sum, Add())};
}

// Makes weights whole numbers of 8 bits, the values' scales multiplied in; gives what their sums are multiplied with.
DEVICE f32 weigh_in_8_bits(u32* weights, const f32* scales, const i64* rows, const Positions& within, i32 lane) {
    const i32 from = within.first / 32 * 32 + lane;
    // Weights are not negative: their bits are in order, and what is not finite is above all that is.
    u32 most = 0;
    for (i32 j = from; j < within.end; j += 32) {
        if (j < within.first || weights[j] == UNSEEN) continue;
        weights[j] = __float_as_uint(__uint_as_float(weights[j]) * scales[rows[j]]) & 0x7fffffffu;
        most = max(most, weights[j]);
    }
    most = join_warp(most, Most());
    const bool finite = most < 0x7f800000u;
    const f32 scale = finite ? fmaxf(__uint_as_float(most) / 255.0f, 0x1p-126f) : __uint_as_float(0x7fc00000u);
    const f32 inverse = 1.0f / scale;
    for (i32 j = from; j < within.end; j += 32) {
        if (j < within.first || weights[j] == UNSEEN) continue;
        const f32 steps = fminf(fmaxf(rintf(__uint_as_float(weights[j]) * inverse), 0.0f), 255.0f);
        weights[j] = finite ? static_cast<u32>(steps) : 0u;
    }
    return scale;
}
