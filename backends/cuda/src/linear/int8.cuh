// INT8 products by the tensor cores: sums over all of K, exact in i32 (modulo 2^32), zero points taken off:
//
//     sum over k of (x - x_zero) * (w - w_zero) = sum x * w - x_zero * sum (w - w_zero) - w_zero * sum x
//
// and then the epilogue. tile.cuh has what is chosen where it is compiled, and X_ALIGN: 16 or 1, what divides the address and
// the stride of the rows of x. (Those of w are packed, hence 16.)

#pragma once
#include "linear/epilogue.cuh"
#include "linear/tile.cuh"

// What is multiplied: `int8.rs` has the same fields in the same order.
struct Operands {
    // Bytes.
    const u8 *x, *w;
    // Of rows, as far apart as scales; null where there are none.
    const i32* x_zeros;
    // Of channels, null where there are none; sums of (w - w_zero) where x has zero points.
    const i32 *w_zeros, *w_sums;
    i64 x_stride, w_stride;
    // `x_unsigned`: x is U8.
    i32 rows, k, x_unsigned;
};

constexpr i32 STAGE_BYTES = (BLOCK_M + BLOCK_N) * BLOCK_K;
// What lies behind the slab at the end: sums of x, of rows.
static_assert(4 * (Tile::SLAB_WORDS + BLOCK_M) <= STAGES * STAGE_BYTES, "shared memory holds the way out");
// Threads that share the sum of a row of x, side by side in a warp.
constexpr i32 SHARERS = Tile::THREADS / BLOCK_M;
static_assert(SHARERS >= 1 && SHARERS <= BLOCK_K / 16, "a sharer has whole chunks");

// U8 less 128, as I8.
constexpr u32 FLIP = 0x80808080u;

DEVICE u32 add_bytes(u32 word, u32 sum, bool is_unsigned) {
    u32 result;
    if (is_unsigned) {
        asm("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(result) : "r"(word), "r"(0x01010101u), "r"(sum));
    } else {
        asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(word), "r"(0x01010101u), "r"(sum));
    }
    return result;
}

// Computes and stores a tile of some rows and, along y of the grid, of channels. `stages`: shared memory.
template <typename Rows> DEVICE void multiply_tile(const Operands& of, const Epilogue& after, const Rows& rows, u8* stages) {
    const u32 shared = shared_address(stages);
    const Warp warp = this_warp();
    const Channels channels = {of.w, of.w_stride, static_cast<i32>(blockIdx.y) * (BLOCK_N >> after.gated), after.results, after.gated};

    i32 sums[Tile::PRODUCTS_M][Tile::PRODUCTS_N][4] = {};
    // Of x, of a row's chunks that this thread has.
    u32 x_sum = 0;
    auto copy = [&](i32 part, i32 stage) {
        const u32 to = shared + stage * STAGE_BYTES;
        copy_part<BLOCK_M, BLOCK_K, X_ALIGN>(to, rows, part * BLOCK_K, of.k);
        copy_part<BLOCK_N, BLOCK_K, 16>(to + BLOCK_M * BLOCK_K, channels, part * BLOCK_K, of.k);
    };
    auto compute = [&](i32, i32 stage) {
        const u32 x_part = shared + stage * STAGE_BYTES, w_part = x_part + BLOCK_M * BLOCK_K;
        auto flip = [&](u32 (&words)[4]) {
            if (!of.x_unsigned) return;
#pragma unroll
            for (i32 i = 0; i < 4; i++) words[i] ^= FLIP;
        };
        multiply_part(sums, x_part, w_part, warp, flip,
                      [](i32 (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) { multiply_add(d, a, b0, b1); });
        if (of.w_zeros != nullptr) {
#pragma unroll
            for (i32 chunk = 0; chunk < BLOCK_K / 16 / SHARERS; chunk++) {
                const i32 row = threadIdx.x / SHARERS, at = threadIdx.x % SHARERS + SHARERS * chunk;
                const Bytes16 bytes = load_shared(x_part + place<BLOCK_K>(row, at));
#pragma unroll
                for (i32 word = 0; word < 4; word++) x_sum = add_bytes(bytes.words[word], x_sum, of.x_unsigned);
            }
        }
    };
    for_each_part((of.k + BLOCK_K - 1) / BLOCK_K, copy, compute);

    i32* const slab = reinterpret_cast<i32*>(stages);
    u32* const x_sums = reinterpret_cast<u32*>(slab + Tile::SLAB_WORDS);
    if (of.w_zeros != nullptr) {
#pragma unroll
        for (i32 distance = 1; distance < SHARERS; distance *= 2) x_sum += __shfl_xor_sync(0xffffffffu, x_sum, distance);
        // Everybody has read the last part.
        __syncthreads();
        if (threadIdx.x % SHARERS == 0) x_sums[threadIdx.x / SHARERS] = x_sum - (of.x_unsigned ? 128u * of.k : 0u);
    }

    const i32 columns = channels.columns(), column = own_column(columns);
    const i64 result = channels.result(column), up = result + after.results;
    const bool there = channels.has(column);
    Channel channel = {}, up_channel = {};
    u32 w_zero = 0, up_zero = 0, w_sum = 0, up_sum = 0;
    if (there) {
        channel = channel_of(after, result);
        if (after.gated) up_channel = channel_of(after, up);
        if (of.w_zeros != nullptr) {
            w_zero = of.w_zeros[result];
            if (after.gated) up_zero = of.w_zeros[up];
        }
        if (of.x_zeros != nullptr) {
            w_sum = of.w_sums[result];
            if (after.gated) up_sum = of.w_sums[up];
        }
    }
    finish_tile(sums, slab, warp, columns, [&](i32 tile_row, i32 sum, i32 sum_of_up) {
        if (!there || !rows.has(tile_row)) return;
        const i64 row = rows.result(tile_row), x_row = rows.source(tile_row);
        const f32 factor = rows.factor(tile_row);
        const u32 x_zero = of.x_zeros == nullptr ? 0u
                                                 : static_cast<u32>(of.x_zeros[x_row * after.x_scales_stride]) - (of.x_unsigned ? 128u : 0u);
        const u32 x_total = of.w_zeros == nullptr ? 0u : x_sums[tile_row];
        const u32 exact = static_cast<u32>(sum) - x_zero * w_sum - w_zero * x_total;
        if (after.out_type == TYPE_I32) return store_bare(after, exact, row, result);
        const f32 y = scale_sum(after, static_cast<f32>(static_cast<i32>(exact)), x_row, result, channel, factor);
        f32 y_up = 0.0f;
        if (after.gated) {
            const u32 exact_up = static_cast<u32>(sum_of_up) - x_zero * up_sum - up_zero * x_total;
            y_up = scale_sum(after, static_cast<f32>(static_cast<i32>(exact_up)), x_row, up, up_channel, factor);
        }
        store_finished(after, y, y_up, row, result);
    });
}
