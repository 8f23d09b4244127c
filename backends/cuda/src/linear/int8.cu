// W8A8: out[m, n] = sum over k of x[m, k] * w[n, k], exact in i32 (K up to 131,071), then scaled by channel and by token.
// Both operands have K contiguous. A block computes BLOCK_M x BLOCK_N of the result by WARPS_M x WARPS_N warps; parts of BLOCK_K
// of K come to shared memory STAGES - 1 parts ahead. Any M, N and K: what lies outside is zero, is not read and not written.
//
// Chosen where it is compiled: BLOCK_M, BLOCK_N, BLOCK_K, STAGES, WARPS_M, WARPS_N, X_ALIGN (16 or 1: what divides the
// address and the stride of the rows of x; those of w are packed, hence 16), OUT (f32, f16, bf16, or i32 for the sums
// themselves).

#include "prelude.cuh"

// (Enumerators, since constants of a class are emitted as variables of the module.)
struct Tile {
    enum : i32 {
        THREADS = 32 * WARPS_M * WARPS_N,
        // What a warp computes, and how many products of 16 x 8 that is.
        WARP_M = BLOCK_M / WARPS_M,
        WARP_N = BLOCK_N / WARPS_N,
        PRODUCTS_M = WARP_M / 16,
        PRODUCTS_N = WARP_N / 8,
        // A row of a part, in chunks of 16 bytes.
        CHUNKS = BLOCK_K / 16,
        STAGE_BYTES = (BLOCK_M + BLOCK_N) * BLOCK_K,
    };
};

static_assert(BLOCK_K == 64 || BLOCK_K == 128, "the swizzle knows these");
static_assert(Tile::WARP_M % 16 == 0 && Tile::WARP_N % 16 == 0, "a warp loads pairs of products along N");
static_assert(STAGES >= 2, "one part is computed while another comes");

// Where (row, chunk) of a part lies in it: one chunk of eight rows is in eight different groups of banks.
DEVICE u32 place(i32 row, i32 chunk) {
    constexpr i32 ROWS_IN_128_BYTES = 128 / BLOCK_K;
    return row * BLOCK_K + 16 * (chunk ^ (row / ROWS_IN_128_BYTES % Tile::CHUNKS));
}

// 16 bytes from global to shared memory: zeros after the first `valid` of them, which are not read.
template <i32 ALIGN> DEVICE void copy_chunk(u32 to, const i8* from, i32 valid);

template <> DEVICE void copy_chunk<16>(u32 to, const i8* from, i32 valid) { copy_async_16(to, from, valid); }

// Bytes at any address go through registers.
template <> DEVICE void copy_chunk<1>(u32 to, const i8* from, i32 valid) {
    Bytes16 chunk = {};
#pragma unroll
    for (i32 at = 0; at < 16; at++) {
        if (at < valid) {
            chunk.words[at / 4] |= static_cast<u32>(static_cast<u8>(from[at])) << (8 * (at % 4));
        }
    }
    store_shared(to, chunk);
}

// The part of K that begins at `k`, of ROWS rows from `first` on of a matrix of `rows` x `columns`.
template <i32 ROWS, i32 ALIGN>
DEVICE void copy_part(u32 to, const i8* matrix, i64 stride, i32 first, i32 rows, i32 k, i32 columns) {
    constexpr i32 COPIES = ROWS * Tile::CHUNKS;
#pragma unroll
    for (i32 base = 0; base < COPIES; base += Tile::THREADS) {
        const i32 index = base + static_cast<i32>(threadIdx.x);
        if (COPIES % Tile::THREADS == 0 || index < COPIES) {
            const i32 row = index / Tile::CHUNKS, chunk = index % Tile::CHUNKS, column = k + 16 * chunk;
            const i32 valid = first + row < rows ? min(max(columns - column, 0), 16) : 0;
            // Where nothing is read the address must still be one.
            const i8* from = valid > 0 ? matrix + (first + row) * stride + column : matrix;
            copy_chunk<ALIGN>(to + place(row, chunk), from, valid);
        }
    }
}

// An element of the result: each product rounds by itself.
DEVICE void finish(f32& out, i32 sum, f32 channel, f32 token) { out = static_cast<f32>(sum) * channel * token; }
DEVICE void finish(f16& out, i32 sum, f32 channel, f32 token) { out = narrow<f16>(static_cast<f32>(sum) * channel * token); }
DEVICE void finish(bf16& out, i32 sum, f32 channel, f32 token) { out = narrow<bf16>(static_cast<f32>(sum) * channel * token); }
DEVICE void finish(i32& out, i32 sum, f32, f32) { out = sum; }

// x: [m, k], rows `x_stride` bytes apart; w: [n, k], rows `w_stride` bytes apart; x_scale: [m] and w_scale: [n], which may
// be null where OUT is i32; out: [m, n], rows `out_stride` elements apart. Grid: blocks along M, blocks along N.
KERNEL void __launch_bounds__(Tile::THREADS)
    linear_int8(const i8* __restrict__ x, const i8* __restrict__ w, const f32* __restrict__ x_scale,
                const f32* __restrict__ w_scale, OUT* __restrict__ out, i64 x_stride, i64 w_stride, i64 out_stride, i32 m,
                i32 n, i32 k) {
    extern __shared__ __align__(128) i8 stages[];
    const u32 shared = shared_address(stages);
    const i32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const i32 block_m = blockIdx.x * BLOCK_M, block_n = blockIdx.y * BLOCK_N;
    const i32 warp_m = warp / WARPS_N * Tile::WARP_M, warp_n = warp % WARPS_N * Tile::WARP_N;
    const i32 parts = (k + BLOCK_K - 1) / BLOCK_K;

    auto copy = [&](i32 part) {
        if (part < parts) {
            const u32 to = shared + part % STAGES * Tile::STAGE_BYTES;
            copy_part<BLOCK_M, X_ALIGN>(to, x, x_stride, block_m, m, part * BLOCK_K, k);
            copy_part<BLOCK_N, 16>(to + BLOCK_M * BLOCK_K, w, w_stride, block_n, n, part * BLOCK_K, k);
        }
        // Also where nothing was left to copy: the wait counts groups.
        copy_async_commit();
    };

    i32 sums[Tile::PRODUCTS_M][Tile::PRODUCTS_N][4] = {};
#pragma unroll
    for (i32 part = 0; part < STAGES - 1; part++) {
        copy(part);
    }
    for (i32 part = 0; part < parts; part++) {
        copy_async_wait<STAGES - 2>();
        // After it this part has come for everybody, and everybody has read the one whose place is filled next.
        __syncthreads();
        copy(part + STAGES - 1);
        const u32 x_part = shared + part % STAGES * Tile::STAGE_BYTES, w_part = x_part + BLOCK_M * BLOCK_K;
#pragma unroll
        for (i32 step = 0; step < BLOCK_K / 32; step++) {
            u32 a[Tile::PRODUCTS_M][4];
#pragma unroll
            for (i32 i = 0; i < Tile::PRODUCTS_M; i++) {
                load_matrices(a[i], x_part + place(warp_m + 16 * i + lane % 16, 2 * step + lane / 16));
            }
#pragma unroll
            for (i32 j = 0; j < Tile::PRODUCTS_N; j += 2) {
                u32 b[4];
                load_matrices(b, w_part + place(warp_n + 8 * j + lane % 8 + lane / 16 * 8, 2 * step + lane / 8 % 2));
#pragma unroll
                for (i32 i = 0; i < Tile::PRODUCTS_M; i++) {
                    multiply_add(sums[i][j], a[i], b[0], b[1]);
                    multiply_add(sums[i][j + 1], a[i], b[2], b[3]);
                }
            }
        }
    }

    // Two neighbours are one store where their address allows.
    const bool paired = (reinterpret_cast<u64>(out) | static_cast<u64>(out_stride * sizeof(OUT))) % sizeof(Pair<OUT>) == 0;
#pragma unroll
    for (i32 i = 0; i < Tile::PRODUCTS_M; i++) {
#pragma unroll
        for (i32 lower = 0; lower < 2; lower++) {
            const i32 row = block_m + warp_m + 16 * i + 8 * lower + lane / 4;
            if (row >= m) {
                continue;
            }
            const f32 token = x_scale == nullptr ? 1.0f : x_scale[row];
#pragma unroll
            for (i32 j = 0; j < Tile::PRODUCTS_N; j++) {
                const i32 column = block_n + warp_n + 8 * j + lane % 4 * 2;
                if (column >= n) {
                    continue;
                }
                const bool second = column + 1 < n;
                const f32 channels[2] = {w_scale == nullptr ? 1.0f : w_scale[column],
                                         w_scale == nullptr || !second ? 1.0f : w_scale[column + 1]};
                Pair<OUT> pair;
                finish(pair.first, sums[i][j][2 * lower], channels[0], token);
                finish(pair.second, sums[i][j][2 * lower + 1], channels[1], token);
                OUT* const to = out + row * out_stride + column;
                if (paired && second) {
                    *reinterpret_cast<Pair<OUT>*>(to) = pair;
                } else {
                    to[0] = pair.first;
                    if (second) {
                        to[1] = pair.second;
                    }
                }
            }
        }
    }
}
