// What a row knows of the positions read so far: their greatest score, the sum of exp(score - greatest) and the values
// weighted by the same. Parts are joined from left to right by these functions wherever it happens, so the place does not show
// in the bits.
#pragma once
#include "prelude.cuh"

constexpr f32 LOWEST = -0x1.fffffep+127f;

DEVICE f32 minus_infinity() { return __uint_as_float(0xff800000u); }

struct Known {
    f32 most, sum;
};

// A row that has seen something has a sum above 0, or NaN.
DEVICE bool is_empty(f32 sum) { return sum == 0.0f; }

struct Joined {
    Known known;
    // What the values so far are multiplied with, and those of the part. Where only one of the two has seen something it is
    // taken as it is, and the other, NaN included, is not used.
    f32 before, part;
    i32 only_before, only_part;
};

DEVICE Joined joined(const Known& before, const Known& part) {
    if (is_empty(part.sum)) return {before, 1.0f, 0.0f, 1, 0};
    if (is_empty(before.sum)) return {part, 0.0f, 1.0f, 0, 1};
    const f32 top = fmaxf(before.most, part.most);
    const f32 by_before = expf(before.most - top), by_part = expf(part.most - top);
    return {{top, fmaf(part.sum, by_part, before.sum * by_before)}, by_before, by_part, 0, 0};
}

DEVICE f32 joined_value(const Joined& now, f32 before, f32 part) {
    if (now.only_before) return before;
    if (now.only_part) return part;
    return fmaf(part, now.part, before * now.before);
}

// How a row ends: its values times `factor` divided by `sum`, and the logarithm of the denominator.
struct Ending {
    f32 factor, sum, log;

    DEVICE f32 of(f32 value) const { return value * factor / sum; }
};

// A sink is a last position whose value is 0.
DEVICE Ending ending(const Known& known, const f32* sink) {
    if (is_empty(known.sum)) return {0.0f, 1.0f, sink == nullptr ? minus_infinity() : *sink};
    if (sink == nullptr) return {1.0f, known.sum, known.most + logf(known.sum)};
    const f32 top = fmaxf(known.most, *sink);
    const f32 factor = expf(known.most - top);
    const f32 total = fmaf(known.sum, factor, expf(*sink - top));
    return {factor, total, top + logf(total)};
}
