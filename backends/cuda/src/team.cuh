// Teams of threads that share a row: a warp, or a block of 256. What they join is joined in an order that only the team's
// size knows, so a row has the same bits wherever it stands.
#pragma once
#include "vector.cuh"

constexpr i32 BLOCK = 256;
constexpr u32 ALL_LANES = 0xffffffffu;

struct Add {
    DEVICE f32 operator()(f32 a, f32 b) const { return a + b; }
};

struct Most {
    DEVICE u32 operator()(u32 a, u32 b) const { return a > b ? a : b; }
};

// What the lanes of a warp have, joined; every lane gets it. All lanes take part.
template <typename T, typename Join> DEVICE T join_warp(T value, Join join) {
#pragma unroll
    for (i32 distance = 16; distance > 0; distance /= 2) value = join(value, __shfl_xor_sync(ALL_LANES, value, distance));
    return value;
}

// Likewise a team of LANES: 32, or BLOCK for all threads of a block, which all take part.
template <i32 LANES, typename T, typename Join> DEVICE T join_team(T value, Join join) {
    static_assert(LANES == 32 || LANES == BLOCK, "a warp or a block");
    value = join_warp(value, join);
    if constexpr (LANES == BLOCK) {
        __shared__ T warps[BLOCK / 32];
        if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
        __syncthreads();
        value = warps[0];
#pragma unroll
        for (i32 warp = 1; warp < BLOCK / 32; warp++) value = join(value, warps[warp]);
        // Until all have read it nobody writes it again.
        __syncthreads();
    }
    return value;
}

// A team and this thread's number in it. Its size is a number and no constant: what a team does is compiled once.
struct Team {
    i32 lanes; // 32 or BLOCK, the same in all teams of a block
    i32 lane;

    // Teams of so many.
    static DEVICE Team of(i32 lanes) { return {lanes, static_cast<i32>(lanes == BLOCK ? threadIdx.x : threadIdx.x % 32)}; }

    // The row that it works on.
    DEVICE i64 number() const {
        return lanes == BLOCK ? blockIdx.x : blockIdx.x * static_cast<i64>(BLOCK / 32) + threadIdx.x / 32;
    }

    // What its threads have, joined; every one gets it. All of them take part.
    template <typename T, typename Join> DEVICE T join(T value, Join by) const {
        return lanes == BLOCK ? join_team<BLOCK>(value, by) : join_team<32>(value, by);
    }
};

// Four columns from c on of a row, 0 where there is none.
template <typename T> DEVICE void load_four(f32 (&to)[4], const T* row, i64 c, i64 end, bool in_vectors) {
    if (in_vectors && c + 4 <= end) {
        load<4>(to, row + c);
    } else {
#pragma unroll
        for (i32 i = 0; i < 4; i++) to[i] = c + i < end ? widen(row[c + i]) : 0.0f;
    }
}

// Writes those of four columns that are there, rounded.
template <typename T> DEVICE void store_four(T* row, const f32 (&from)[4], i64 c, i64 end, bool in_vectors) {
    if (in_vectors && c + 4 <= end) {
        store<4>(row + c, from);
    } else {
#pragma unroll
        for (i32 i = 0; i < 4; i++) {
            if (c + i < end) row[c + i] = narrow<T>(from[i]);
        }
    }
}

// Whether rows have four elements together: their beginning is at a multiple of four elements' size.
template <typename T> DEVICE bool has_fours(const T* row) {
    return reinterpret_cast<u64>(row) % (4 * sizeof(T)) == 0;
}
