// INT8 activations times integer weights of W_BITS (4 or 8) bits whose scales, or those of the activations, change along K, by
// the tensor cores. K is cut into steps within which no scale changes; sums of a step are exact in i32. Then, in ascending K,
// each operation rounded by itself:
//
//     term = f32(sum x * (w - zero)) * w_scale, term + f32(sum x) * minimum, term * x_scale; y = y + term
//
// and the epilogue. tile.cuh has what else is chosen where it is compiled, and X_ALIGN: 16 or 1, what divides the address and
// the stride of the rows of x. (Those of w are packed, hence 16.)

#pragma once
#include "linear/float_sums.cuh"

enum Offset : i32 { NO_OFFSET, ZERO_POINTS, MINIMA };

// What is multiplied: `group_wise.rs` has the same fields in the same order.
struct Operands {
    const u8 *x, *w;
    // Of groups along K; null where a row, or a channel, has one.
    const f32 *x_scales, *w_scales;
    // Zero points of 4 bits as I32, or minima as F32.
    const void* offsets;
    // A byte a column, 0 for outlier columns, to a multiple of 32; null where all count.
    const u32* kept;
    i64 x_stride, w_stride, x_scales_stride;
    // `step`: columns within which no scale changes, a multiple of 32 or all; `groups` of a channel.
    i32 rows, k, step, w_group, x_group, groups, offset;
};

// A product of 16 x 8 takes so many columns; so many weights of 4 bits have 16 bytes.
constexpr i32 COLUMNS = 32;
constexpr i32 W_BYTES = BLOCK_K * W_BITS / 8;
constexpr i32 X_PART_BYTES = BLOCK_M * BLOCK_K;
constexpr i32 STAGE_BYTES = X_PART_BYTES + BLOCK_N * W_BYTES;
static_assert(4 * Tile::SLAB_WORDS <= STAGES * STAGE_BYTES, "shared memory holds the way out");
static_assert(W_BITS == 4 || W_BITS == 8, "what products are made of");

// Four bytes with codes of 4 bits, less a zero point of 0 to 15 that each byte of `zeros` has: none borrows of the next.
DEVICE u32 take_off(u32 codes, u32 zeros) { return ((codes | 0x80808080u) - zeros) ^ 0x80808080u; }

// Of a multiprocessor, at least: so a thread may have 168 registers.
constexpr i32 BLOCKS = 384 / Tile::THREADS;

// Computes and stores a tile of some rows and, along y of the grid, of channels. `stages`: shared memory.
template <typename Rows> DEVICE void multiply_tile(const Operands& of, const Epilogue& after, const Rows& rows, u8* stages) {
    const u32 shared = shared_address(stages);
    const Warp warp = this_warp();
    const Channels channels = {of.w, of.w_stride, static_cast<i32>(blockIdx.y) * (BLOCK_N >> after.gated), after.results,
                               after.gated};

    f32 y[Tile::PRODUCTS_M][Tile::PRODUCTS_N][4] = {};
    // Of a step: products, and x of the lane's rows.
    i32 sums[Tile::PRODUCTS_M][Tile::PRODUCTS_N][4] = {};
    i32 x_sums[Tile::PRODUCTS_M][4] = {};
    // Of the step's group: of the two columns of results that the lane has, and zero points of the channel that it multiplies.
    f32 w_scales[Tile::PRODUCTS_N][2], minima[Tile::PRODUCTS_N][2];
    u32 zeros[Tile::PRODUCTS_N];
    // Columns of the step that are summed up.
    i32 summed = 0;

    auto begin_step = [&](i32 k) {
        const i32 group = k / of.w_group;
#pragma unroll
        for (i32 j = 0; j < Tile::PRODUCTS_N; j++) {
#pragma unroll
            for (i32 second = 0; second < 2; second++) {
                const i32 column = warp.n + 8 * j + warp.lane % 4 * 2 + second;
                const bool there = channels.has(column);
                const i64 at = there ? channels.channel(column) * of.groups + group : 0;
                w_scales[j][second] = there && of.w_scales != nullptr ? of.w_scales[at] : 0.0f;
                minima[j][second] = there && of.offset == MINIMA ? static_cast<const f32*>(of.offsets)[at] : 0.0f;
            }
            if constexpr (W_BITS == 4) {
                const i32 column = warp.n + 8 * j + warp.lane / 4;
                zeros[j] = of.offset == NO_OFFSET ? 8u : 0u;
                if (of.offset == ZERO_POINTS && channels.has(column)) {
                    zeros[j] = static_cast<const u32*>(of.offsets)[channels.channel(column) * of.groups + group];
                }
                zeros[j] *= 0x01010101u;
            }
        }
    };
    auto end_step = [&](i32 k) {
#pragma unroll
        for (i32 i = 0; i < Tile::PRODUCTS_M; i++) {
#pragma unroll
            for (i32 lower = 0; lower < 2; lower++) {
                const i32 row = warp.m + 16 * i + 8 * lower + warp.lane / 4;
                f32 x_scale = 0.0f;
                if (of.x_scales != nullptr && rows.has(row)) {
                    x_scale = of.x_scales[rows.source(row) * of.x_scales_stride + k / of.x_group];
                }
                const f32 x_sum = static_cast<f32>(x_sums[i][2 * lower]);
#pragma unroll
                for (i32 j = 0; j < Tile::PRODUCTS_N; j++) {
#pragma unroll
                    for (i32 second = 0; second < 2; second++) {
                        i32& sum = sums[i][j][2 * lower + second];
                        f32 term = static_cast<f32>(sum);
                        sum = 0;
                        if (of.w_scales != nullptr) term = __fmul_rn(term, w_scales[j][second]);
                        if (of.offset == MINIMA) term = __fadd_rn(term, __fmul_rn(x_sum, minima[j][second]));
                        if (of.x_scales != nullptr) term = __fmul_rn(term, x_scale);
                        f32& to = y[i][j][2 * lower + second];
                        to = __fadd_rn(to, term);
                    }
                }
            }
#pragma unroll
            for (i32 word = 0; word < 4; word++) x_sums[i][word] = 0;
        }
    };

    auto copy = [&](i32 part, i32 stage) {
        const u32 to = shared + stage * STAGE_BYTES;
        copy_part<BLOCK_M, BLOCK_K, X_ALIGN>(to, rows, part * BLOCK_K, of.k);
        // Rows of 4 bits are packed to whole products.
        const i32 end = W_BITS == 8 ? of.k : (of.k - 1) / COLUMNS * 16 + 16;
        copy_part<BLOCK_N, W_BYTES, 16>(to + X_PART_BYTES, channels, part * W_BYTES, end);
    };
    auto compute = [&](i32 part, i32 stage) {
        const u32 x_part = shared + stage * STAGE_BYTES, w_part = x_part + X_PART_BYTES;
#pragma unroll 1
        for (i32 step = 0; step < BLOCK_K / COLUMNS; step++) {
            const i32 k = part * BLOCK_K + COLUMNS * step;
            if (k >= of.k) break;
            if (summed == 0) begin_step(k);
            u32 a[Tile::PRODUCTS_M][4];
#pragma unroll
            for (i32 i = 0; i < Tile::PRODUCTS_M; i++) load_rows(a[i], x_part, warp, i, step);
#pragma unroll
            for (i32 j = 0; j < Tile::PRODUCTS_N; j += 2) {
                u32 b[4];
                if constexpr (W_BITS == 8) {
                    load_channels(b, w_part, warp, j, step);
                } else {
                    // A byte has columns c and c + 16: just what the two words of an operand have.
                    u32 codes[2];
                    load_matrices(codes, w_part + place<W_BYTES>(warp.n + 8 * j + warp.lane % 16, step));
#pragma unroll
                    for (i32 word = 0; word < 4; word++) {
                        b[word] = take_off(codes[word / 2] >> (4 * (word % 2)) & 0x0f0f0f0fu, zeros[j + word / 2]);
                    }
                }
#pragma unroll
                for (i32 i = 0; i < Tile::PRODUCTS_M; i++) {
                    multiply_add(sums[i][j], a[i], b[0], b[1]);
                    multiply_add(sums[i][j + 1], a[i], b[2], b[3]);
                }
            }
            if (of.offset == MINIMA) {
                // Times 1, or 0 where a column does not count.
                const i32 word = k / 4 + warp.lane % 4;
                const u32 first = of.kept == nullptr ? 0x01010101u : of.kept[word];
                const u32 second = of.kept == nullptr ? 0x01010101u : of.kept[word + 4];
#pragma unroll
                for (i32 i = 0; i < Tile::PRODUCTS_M; i++) multiply_add(x_sums[i], a[i], first, second);
            }
            summed += COLUMNS;
            if (summed >= of.step || k + COLUMNS >= of.k) {
                end_step(k);
                summed = 0;
            }
        }
    };
    for_each_part((of.k - 1) / BLOCK_K + 1, copy, compute);
    finish_floats(y, reinterpret_cast<f32*>(stages), warp, rows, channels, after);
}
