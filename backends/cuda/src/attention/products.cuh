// What a warp multiplies by the tensor cores: 16 rows of queries with a step's keys, and the weights that come of it with some
// columns of the values. A lane holds of each product of 16 x 8 rows lane / 4 and lane / 4 + 8 and two columns.
//
// COLUMNS, chosen where it is compiled: those of values that a warp has room for.
#pragma once
#include "attention/step.cuh"

// Columns that are loaded together, and how many times.
constexpr i32 UNIT = 16, UNITS = COLUMNS / UNIT;

// A warp's place: 16 rows from `row` on, and `units` of columns from `unit` on.
struct Warp {
    i32 lane, row, unit, units;

    DEVICE i32 column(i32 of_unit, i32 half) const { return UNIT * (unit + of_unit) + 8 * half + lane % 4 * 2; }
};

// ---- Weights in parts that are multiplied exactly.

DEVICE f32 upper_half(f32 x) { return __uint_as_float(__float_as_uint(x) & 0xffff0000u); }

template <typename T> struct Parts;

// F32 has three times the bits of BF16.
template <> struct Parts<bf16> {
    enum : i32 { COUNT = 3 };
    static DEVICE f32 scale() { return 1.0f; }

    static DEVICE void of(u32 (&to)[COUNT], f32 first, f32 second) {
#pragma unroll
        for (i32 part = 0; part < COUNT; part++) {
            to[part] = __byte_perm(__float_as_uint(first), __float_as_uint(second), 0x7632);
            first -= upper_half(first);
            second -= upper_half(second);
        }
    }
};

// Twice those of F16 leave out 2^-22; F16's range is that of weights up to 2^15.
template <> struct Parts<f16> {
    enum : i32 { COUNT = 2 };
    static DEVICE f32 scale() { return 32768.0f; }

    static DEVICE void of(u32 (&to)[COUNT], f32 first, f32 second) {
#pragma unroll
        for (i32 part = 0; part < COUNT; part++) {
            to[part] = narrow_pair<f16>(first, second);
            first -= widen(f16{static_cast<u16>(to[part])});
            second -= widen(f16{static_cast<u16>(to[part] >> 16)});
        }
    }
};

typedef Parts<Value> ValueParts;

// ---- Products.

// Sums of queries times keys, in steps of 16 elements in ascending order.
DEVICE void multiply_keys(f32 (&sums)[STEP / 8][4], u32 queries, u32 keys, i32 stride, i32 head_dim, const Warp& warp) {
    const u32 q = queries + (warp.row + warp.lane % 16) * stride + warp.lane / 16 * 16;
    const u32 k = keys + (warp.lane % 8 + warp.lane / 16 * 8) * stride + warp.lane / 8 % 2 * 16;
#pragma unroll 2
    for (i32 d = 0; d < head_dim; d += 16) {
        u32 a[4];
        load_matrices(a, q + 2 * d);
#pragma unroll
        for (i32 i = 0; i < STEP / 16; i++) {
            u32 b[4];
            load_matrices(b, k + 16 * i * stride + 2 * d);
            multiply_add<ELEMENT>(sums[2 * i], a, b[0], b[1]);
            multiply_add<ELEMENT>(sums[2 * i + 1], a, b[2], b[3]);
        }
    }
}

// The bits of an element that are all ones where it is not finite.
template <typename T> constexpr u32 EXPONENT = 0x7f80u;
template <> constexpr u32 EXPONENT<f16> = 0x7c00u;

DEVICE bool is_finite(u32 element) { return (element & EXPONENT<Value>) != EXPONENT<Value>; }

// A word of two elements with 0 for those that are not finite.
DEVICE u32 finite_ones(u32 word) {
    return (is_finite(word) ? word & 0xffffu : 0u) | (is_finite(word >> 16) ? word & 0xffff0000u : 0u);
}

// Adds weights times values. FINITE: without those values that are not finite.
template <bool FINITE>
DEVICE void multiply_values(f32 (&sums)[UNITS][2][4], const f32 (&weights)[STEP / 8][4], u32 values, i32 stride,
                            const Warp& warp) {
    const u32 v = values + warp.lane % 16 * stride + warp.lane / 16 * 16 + 2 * UNIT * warp.unit;
#pragma unroll
    for (i32 i = 0; i < STEP / 16; i++) {
        u32 parts[4][ValueParts::COUNT];
#pragma unroll
        for (i32 j = 0; j < 4; j++) {
            const f32(&from)[4] = weights[2 * i + j / 2];
            ValueParts::of(parts[j], from[2 * (j % 2)], from[2 * (j % 2) + 1]);
        }
#pragma unroll
        for (i32 unit = 0; unit < UNITS; unit++) {
            if (unit >= warp.units) break;
            u32 b[4];
            load_transposed(b, v + 16 * i * stride + 2 * UNIT * unit);
            if constexpr (FINITE) {
#pragma unroll
                for (i32 j = 0; j < 4; j++) b[j] = finite_ones(b[j]);
            }
#pragma unroll
            for (i32 part = ValueParts::COUNT - 1; part >= 0; part--) {
                const u32 a[4] = {parts[0][part], parts[1][part], parts[2][part], parts[3][part]};
                multiply_add<Value>(sums[unit][0], a, b[0], b[1]);
                multiply_add<Value>(sums[unit][1], a, b[2], b[3]);
            }
        }
    }
}

// ---- Values that are not finite: a weight of 0 does not keep them from a row that does not see them.

// Whether a step has some in the warp's columns; `values` as the block has them.
DEVICE bool has_unfinite(const u8* values, i32 stride, const Warp& warp) {
    bool found = false;
    const u32* row = reinterpret_cast<const u32*>(values + warp.lane * stride) + UNIT / 2 * warp.unit;
    for (i32 i = 0; i < UNIT / 2 * warp.units; i++) found = found || !is_finite(row[i]) || !is_finite(row[i] >> 16);
    return __any_sync(ALL_LANES, found);
}

// Adds them for rows that see them; `seen`: this lane's positions, as bits.
DEVICE void add_unfinite(f32 (&sums)[UNITS][2][4], const u8* values, i32 stride, const u32 (&seen)[2], const Warp& warp) {
    u32 all[2];
#pragma unroll
    for (i32 half = 0; half < 2; half++) {
        all[half] = seen[half] | __shfl_xor_sync(ALL_LANES, seen[half], 1);
        all[half] |= __shfl_xor_sync(ALL_LANES, all[half], 2);
    }
#pragma unroll 1
    for (i32 place = 0; place < STEP; place++) {
#pragma unroll
        for (i32 i = 0; i < 2 * UNITS; i++) {
            if (i / 2 >= warp.units) break;
            const u32 word = *reinterpret_cast<const u32*>(values + place * stride + 2 * warp.column(i / 2, i % 2));
#pragma unroll
            for (i32 c = 0; c < 4; c++) {
                const Value element = {static_cast<u16>(c % 2 == 0 ? word : word >> 16)};
                if (!is_finite(element.bits) && (all[c / 2] >> place & 1u) != 0) sums[i / 2][i % 2][c] += widen(element);
            }
        }
    }
}
