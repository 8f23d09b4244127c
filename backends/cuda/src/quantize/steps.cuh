// A scale and a zero point, and integers by them: the arithmetic of `halite_kernels::quantize`, operation by operation.
#pragma once
#include "prelude.cuh"

// How far values reach below and above 0, as the bits of both magnitudes, which are in the magnitudes' order; what is not
// finite is beyond all others.
struct Range {
    u32 below, above;
};

DEVICE void include(Range& range, f32 y) {
    const u32 bits = __float_as_uint(y);
    const u32 size = bits & 0x7fffffffu;
    const u32 below = bits >> 31 ? size : 0, above = bits >> 31 ? 0 : size;
    range.below = below > range.below ? below : range.below;
    range.above = above > range.above ? above : range.above;
}

struct Format {
    bool asymmetric;
    f32 least, most;
};

DEVICE Format format_of(i32 asymmetric, i32 is_unsigned) {
    if (!asymmetric) return {false, -127.0f, 127.0f};
    return {true, is_unsigned ? 0.0f : -128.0f, is_unsigned ? 255.0f : 127.0f};
}

struct Steps {
    f32 scale;
    i32 zero;
    // What values are divided by with a zero point, and multiplied by without.
    f32 by;
    // False where a value is not finite: all is 0 then.
    bool told;
};

constexpr f32 SMALLEST_SCALE = 0x1p-126f;

DEVICE f32 within(f32 x, const Format& format) { return fminf(fmaxf(x, format.least), format.most); }

DEVICE Steps steps_of(const Range& range, const Format& format) {
    const u32 largest = range.below > range.above ? range.below : range.above;
    if (largest >= 0x7f800000u) return {__uint_as_float(0x7fc00000u), 0, 0.0f, false};
    if (!format.asymmetric) {
        const f32 scale = fmaxf(__uint_as_float(largest) / 127.0f, SMALLEST_SCALE);
        return {scale, 0, 1.0f / scale, true};
    }
    const f32 below = __uint_as_float(range.below);
    const f32 scale = fmaxf(__uint_as_float(range.above) / 255.0f + below / 255.0f, SMALLEST_SCALE);
    return {scale, static_cast<i32>(within(rintf(format.least + below / scale), format)), scale, true};
}

// Of a scale and a zero point that are given.
DEVICE Steps given_steps(f32 scale, i32 zero, const Format& format) {
    return {scale, zero, format.asymmetric ? scale : 1.0f / scale, true};
}

// A value's integer, as a byte. What cannot be told is the zero point, and what is infinite saturates.
DEVICE u8 byte_of(f32 x, const Steps& steps, const Format& format) {
    if (!steps.told) return 0;
    const f32 y = rintf(format.asymmetric ? x / steps.by : x * steps.by);
    const f32 whole = (isnan(y) ? 0.0f : y) + static_cast<f32>(steps.zero);
    return static_cast<u8>(static_cast<i32>(within(whole, format)));
}
