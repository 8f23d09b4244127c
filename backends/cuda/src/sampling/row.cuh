// A row of logits, and its order: by logit, highest first, ties by the lower id, NaN last. A block works on a row.
//
// A candidate's place is 64 bits, all different, less for what comes first: above the rank, which ascends as the logit falls
// and is the same for equal logits, below the id.
#pragma once
#include "team.cuh"

// Where NaN ranks, and a place behind all others.
constexpr u32 UNORDERED = 0xffffffffu;
constexpr u64 NOWHERE = ~0ull;

DEVICE u32 rank_of(f32 x) {
    const u32 bits = __float_as_uint(x), magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return UNORDERED;
    if (magnitude == 0) return 0x7fffffffu;
    return bits >> 31 ? bits : ~bits & 0x7fffffffu;
}

DEVICE u32 rank(u64 place) { return static_cast<u32>(place >> 32); }
DEVICE u32 id(u64 place) { return static_cast<u32>(place); }

// The logit of a rank that is not NaN's.
DEVICE f32 logit(u32 rank) { return __uint_as_float(rank >> 31 ? rank : ~rank & 0x7fffffffu); }

struct Row {
    const f32* logits;
    i64 vocabulary;

    DEVICE u64 place(i64 id) const { return static_cast<u64>(rank_of(logits[id])) << 32 | static_cast<u32>(id); }
};

struct Least {
    DEVICE u64 operator()(u64 a, u64 b) const { return a < b ? a : b; }
};

struct AddWhole {
    DEVICE u64 operator()(u64 a, u64 b) const { return a + b; }
};

// The place of the first in the order.
DEVICE u64 first_of(const Row& row) {
    u64 found = NOWHERE;
#pragma unroll 4
    for (i64 id = threadIdx.x; id < row.vocabulary; id += BLOCK) found = Least{}(row.place(id), found);
    return join_team<BLOCK>(found, Least{});
}

// What candidates weigh: exp((logit - greatest) / temperature), from 0 to 1, as whole numbers of 2^-bits. Sums of them are
// exact, so that no order of addition changes a bit.
struct Weights {
    f32 greatest, before, scale;
    i32 bits;

    // At temperatures above 2^64 logits are scaled before they are subtracted: a difference that F32 does not hold may weigh
    // as much as any.
    DEVICE Weights(u64 first, f32 times, f32 then, i32 bits)
        : greatest(logit(rank(first)) * times), before(times), scale(then), bits(bits) {}

    DEVICE f32 of(u64 place) const {
        // Minus infinity and NaN.
        if (rank(place) >= 0xff800000u) return 0.0f;
        return expf((logit(rank(place)) * before - greatest) * scale);
    }

    // The whole part of x * 2^bits, of an x from 0 to 1 and at most 44 bits.
    DEVICE u64 whole(f32 x) const {
        const u32 word = __float_as_uint(x);
        const i32 exponent = static_cast<i32>(word >> 23);
        if (exponent == 0) return 0;
        const u64 mantissa = (word & 0x7fffffu) | 0x800000u;
        // x is mantissa * 2^(exponent - 150).
        const i32 shift = exponent - 150 + bits;
        if (shift > 0) return mantissa << shift;
        return shift > -24 ? mantissa >> -shift : 0;
    }
};

// Whether the greatest logit is finite.
DEVICE bool has_weights(u64 first) { return rank(first) >= 0x00800000u && rank(first) < 0xff800000u; }

// The whole part of a * fraction / 2^32.
DEVICE u64 part(u64 a, u32 fraction) { return (a >> 32) * fraction + ((a & 0xffffffffu) * fraction >> 32); }

DEVICE f32 as_float(u64 a) { return fmaf(static_cast<f32>(static_cast<u32>(a >> 32)), 0x1p32f, static_cast<f32>(static_cast<u32>(a))); }
