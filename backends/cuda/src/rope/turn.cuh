// Pairs that turn: elements `i` and `i + pairs` of a head, or interleaved `2i` and `2i + 1`.
#pragma once
#include "prelude.cuh"

struct Turning {
    const f32* cos_sin; // [tokens, 2, pairs]
    i64 pairs;
    i32 interleaved;
    f32 direction; // -1 turns back

    DEVICE i64 first(i64 pair) const { return interleaved ? 2 * pair : pair; }
    DEVICE i64 second(i64 pair) const { return interleaved ? 2 * pair + 1 : pair + pairs; }

    // Each product and each sum is rounded by itself: nothing is contracted.
    DEVICE void turn(f32& a, f32& b, i64 token, i64 pair) const {
        const f32 c = cos_sin[token * 2 * pairs + pair];
        const f32 s = cos_sin[token * 2 * pairs + pairs + pair] * direction;
        const f32 left = a, right = b;
        a = left * c - right * s;
        b = left * s + right * c;
    }
};
