// A block's tile of a product: BLOCK_M rows of x and BLOCK_N channels of w by WARPS_M x WARPS_N warps. Both have K contiguous;
// parts of BLOCK_K bytes of K come to shared memory STAGES - 1 parts ahead. Any number of rows, channels and columns: what lies
// outside is zero, is not read and not written. Where rows lie is told by a source of rows:
//
//     bool has(i32 row) const          whether the tile's row is there
//     const u8* at(i32 row) const      its bytes, at a multiple of ALIGN, where it is
//     const u8* anywhere() const       an address of the matrix, for copies of nothing
//
// and, of rows of x that are there, what the way out asks for:
//
//     i64 source(i32 row) const        which row of x it is, for what is told of those
//     i64 result(i32 row) const        which row of the result
//     f32 factor(i32 row) const        what multiplies its scale
//
// Chosen where it is compiled: BLOCK_M, BLOCK_N, BLOCK_K, STAGES, WARPS_M, WARPS_N.
#pragma once
#include "prelude.cuh"

// (Enumerators, since constants of a class are emitted as variables of the module.)
struct Tile {
    enum : i32 {
        THREADS = 32 * WARPS_M * WARPS_N,
        // Of a multiprocessor, at least: so a thread may have 128 registers.
        BLOCKS = 512 / THREADS,
        // What a warp computes, and how many products of 16 x 8 that is.
        WARP_M = BLOCK_M / WARPS_M,
        WARP_N = BLOCK_N / WARPS_N,
        PRODUCTS_M = WARP_M / 16,
        PRODUCTS_N = WARP_N / 8,
        // Sums that are stored together: 16 rows of each warp, rows in different groups of banks.
        SLAB_ROWS = 16 * WARPS_M,
        SLAB_STRIDE = BLOCK_N + 8,
        SLAB_WORDS = SLAB_ROWS * SLAB_STRIDE,
    };
};

static_assert(BLOCK_K == 64 || BLOCK_K == 128, "the swizzle knows these");
static_assert(Tile::WARP_M % 16 == 0 && Tile::WARP_N % 16 == 0, "a warp loads pairs of products along N");
static_assert(STAGES >= 2, "one part is computed while another comes");
static_assert(Tile::THREADS % BLOCK_N == 0, "a thread finishes one column of all rows");

// Rows that lie evenly, from `first` on of `rows` in all.
struct EvenRows {
    const u8* matrix;
    i64 stride;
    i32 first, rows;

    DEVICE bool has(i32 row) const { return first + row < rows; }
    DEVICE const u8* at(i32 row) const { return matrix + (first + row) * stride; }
    DEVICE const u8* anywhere() const { return matrix; }
    DEVICE i64 source(i32 row) const { return first + row; }
    DEVICE i64 result(i32 row) const { return first + row; }
    DEVICE f32 factor(i32) const { return 1.0f; }
};

// The channels of a block's results, from `first` of `results` on. Where the layer is gated, gates are the first half of the
// tile and their ups, `results` channels later, the second.
struct Channels {
    const u8* matrix;
    i64 stride;
    i32 first, results, gated;

    // Results of a tile.
    DEVICE i32 columns() const { return BLOCK_N >> gated; }
    DEVICE i32 result(i32 column) const { return first + column % columns(); }
    DEVICE i64 channel(i32 column) const { return result(column) + (column < columns() ? 0 : static_cast<i64>(results)); }

    DEVICE bool has(i32 column) const { return result(column) < results; }
    DEVICE const u8* at(i32 column) const { return matrix + channel(column) * stride; }
    DEVICE const u8* anywhere() const { return matrix; }
};

// ---- Parts in shared memory.

// Where (row, chunk of 16 bytes) of a part lies in it: one chunk of eight rows is in eight different groups of banks.
template <i32 ROW_BYTES> DEVICE u32 place(i32 row, i32 chunk) {
    constexpr i32 ROWS_IN_128_BYTES = 128 / ROW_BYTES;
    constexpr i32 CHUNKS = ROW_BYTES / 16;
    return row * ROW_BYTES + 16 * (chunk ^ (row / ROWS_IN_128_BYTES % CHUNKS));
}

// 16 bytes from global to shared memory: zeros after the first `valid` of them, which are not read.
template <i32 ALIGN> DEVICE void copy_chunk(u32 to, const u8* from, i32 valid);

template <> DEVICE void copy_chunk<16>(u32 to, const u8* from, i32 valid) { copy_async_16(to, from, valid); }

// Bytes at any address go through registers.
template <> DEVICE void copy_chunk<1>(u32 to, const u8* from, i32 valid) {
    Bytes16 chunk = {};
#pragma unroll
    for (i32 at = 0; at < 16; at++) {
        if (at < valid) chunk.words[at / 4] |= static_cast<u32>(from[at]) << (8 * (at % 4));
    }
    store_shared(to, chunk);
}

// ROW_BYTES of each of ROWS rows, from byte `k` on of `end`.
template <i32 ROWS, i32 ROW_BYTES, i32 ALIGN, typename Source> DEVICE void copy_part(u32 to, const Source& rows, i32 k, i32 end) {
    constexpr i32 CHUNKS = ROW_BYTES / 16;
    constexpr i32 COPIES = ROWS * CHUNKS;
#pragma unroll
    for (i32 base = 0; base < COPIES; base += Tile::THREADS) {
        const i32 index = base + static_cast<i32>(threadIdx.x);
        if (COPIES % Tile::THREADS == 0 || index < COPIES) {
            const i32 row = index / CHUNKS, chunk = index % CHUNKS, at = k + 16 * chunk;
            const i32 valid = rows.has(row) ? min(max(end - at, 0), 16) : 0;
            // Where nothing is read the address must still be one.
            copy_chunk<ALIGN>(to + place<ROW_BYTES>(row, chunk), valid > 0 ? rows.at(row) + at : rows.anywhere(), valid);
        }
    }
}

// Computes all parts in ascending order: `copy(part, stage)` begins to bring one, `compute(part, stage)` has it.
template <typename Copy, typename Compute> DEVICE void for_each_part(i32 parts, Copy copy, Compute compute) {
#pragma unroll
    for (i32 part = 0; part < STAGES - 1; part++) {
        if (part < parts) copy(part, part);
        // Also where nothing was left to copy: the wait counts groups.
        copy_async_commit();
    }
    for (i32 part = 0; part < parts; part++) {
        copy_async_wait<STAGES - 2>();
        // After it this part has come for everybody, and everybody has read the one whose place is filled next.
        __syncthreads();
        const i32 next = part + STAGES - 1;
        if (next < parts) copy(next, next % STAGES);
        copy_async_commit();
        compute(part, part % STAGES);
    }
}

// ---- A warp's place in the tile, and what its lanes hold.

struct Warp {
    i32 lane, m, n;
};

DEVICE Warp this_warp() {
    const i32 warp = threadIdx.x / 32;
    return {static_cast<i32>(threadIdx.x % 32), warp / WARPS_N * Tile::WARP_M, warp % WARPS_N * Tile::WARP_N};
}

// The 32 bytes of K of step `step` of a part: 16 rows, the i-th of the warp's.
DEVICE void load_rows(u32 (&a)[4], u32 part, const Warp& warp, i32 i, i32 step) {
    load_matrices(a, part + place<BLOCK_K>(warp.m + 16 * i + warp.lane % 16, 2 * step + warp.lane / 16));
}

// Likewise 16 channels, the j-th and next of the warp's eights.
DEVICE void load_channels(u32 (&b)[4], u32 part, const Warp& warp, i32 j, i32 step) {
    load_matrices(b, part + place<BLOCK_K>(warp.n + 8 * j + warp.lane % 8 + warp.lane / 16 * 8, 2 * step + warp.lane / 8 % 2));
}

// A part's products: `prepare(a)` may change words of rows, `multiply(d, a, b0, b1)` is a product of 16 x 8.
template <typename Sum, typename Prepare, typename Multiply>
DEVICE void multiply_part(Sum (&sums)[Tile::PRODUCTS_M][Tile::PRODUCTS_N][4], u32 x_part, u32 w_part, const Warp& warp,
                          Prepare prepare, Multiply multiply) {
#pragma unroll
    for (i32 step = 0; step < BLOCK_K / 32; step++) {
        u32 a[Tile::PRODUCTS_M][4];
#pragma unroll
        for (i32 i = 0; i < Tile::PRODUCTS_M; i++) {
            load_rows(a[i], x_part, warp, i, step);
            prepare(a[i]);
        }
#pragma unroll
        for (i32 j = 0; j < Tile::PRODUCTS_N; j += 2) {
            u32 b[4];
            load_channels(b, w_part, warp, j, step);
#pragma unroll
            for (i32 i = 0; i < Tile::PRODUCTS_M; i++) {
                multiply(sums[i][j], a[i], b[0], b[1]);
                multiply(sums[i][j + 1], a[i], b[2], b[3]);
            }
        }
    }
}

// ---- The way out.

// The column of the tile that this thread finishes, of `columns` (a power of two).
DEVICE i32 own_column(i32 columns) { return threadIdx.x & (columns - 1); }

// Calls `finish(row, sum, up)` for every row of this thread's column: `up` is the sum `columns` further where that is in the
// tile. Sums go by shared memory at `slab`, of which nobody needs the content any more: so what finishes is compiled once, a
// channel is read once for all rows, and a row's results are stored together.
template <typename Sum, typename Finish>
DEVICE void finish_tile(const Sum (&sums)[Tile::PRODUCTS_M][Tile::PRODUCTS_N][4], Sum* slab, const Warp& warp, i32 columns,
                        Finish finish) {
    const i32 column = own_column(columns), first = threadIdx.x / columns, rows = Tile::THREADS / columns;
#pragma unroll 1
    for (i32 which = 0; which < Tile::PRODUCTS_M; which++) {
        // Everybody has read what lay here.
        __syncthreads();
#pragma unroll
        for (i32 i = 0; i < Tile::PRODUCTS_M; i++) {
            if (i != which) continue;
#pragma unroll
            for (i32 j = 0; j < Tile::PRODUCTS_N; j++) {
#pragma unroll
                for (i32 lower = 0; lower < 2; lower++) {
                    const i32 row = warp.m / Tile::WARP_M * 16 + 8 * lower + warp.lane / 4;
                    Sum* const to = slab + row * Tile::SLAB_STRIDE + warp.n + 8 * j + warp.lane % 4 * 2;
                    *reinterpret_cast<Pair<Sum>*>(to) = {sums[i][j][2 * lower], sums[i][j][2 * lower + 1]};
                }
            }
        }
        __syncthreads();
#pragma unroll 1
        for (i32 row = first; row < Tile::SLAB_ROWS; row += rows) {
            const Sum* const sum = slab + row * Tile::SLAB_STRIDE + column;
            finish(row / 16 * Tile::WARP_M + 16 * which + row % 16, sum[0], columns < BLOCK_N ? sum[columns] : Sum());
        }
    }
}
