// Products of F16 or BF16 (ELEMENT, f16 or bf16) by the tensor cores: products exact, sums in F32, one chain of steps of 16
// columns in ascending K, whatever the number of rows; then the epilogue. tile.cuh has what else is chosen where it is compiled,
// and X_ALIGN: 16 or 1, what divides the address and the stride of the rows of x in bytes. (Those of w are packed, hence 16.)

#pragma once
#include "linear/float_sums.cuh"

// What is multiplied: `float.rs` has the same fields in the same order.
struct Operands {
    const u8 *x, *w;
    // Bytes, of a row's columns too.
    i64 x_stride, w_stride;
    i32 rows, row_bytes;
};

constexpr i32 STAGE_BYTES = (BLOCK_M + BLOCK_N) * BLOCK_K;
static_assert(4 * Tile::SLAB_WORDS <= STAGES * STAGE_BYTES, "shared memory holds the way out");

// Computes and stores a tile of some rows and, along y of the grid, of channels. `stages`: shared memory.
template <typename Rows> DEVICE void multiply_tile(const Operands& of, const Epilogue& after, const Rows& rows, u8* stages) {
    const u32 shared = shared_address(stages);
    const Warp warp = this_warp();
    const Channels channels = {of.w, of.w_stride, static_cast<i32>(blockIdx.y) * (BLOCK_N >> after.gated), after.results,
                               after.gated};

    f32 sums[Tile::PRODUCTS_M][Tile::PRODUCTS_N][4] = {};
    auto copy = [&](i32 part, i32 stage) {
        const u32 to = shared + stage * STAGE_BYTES;
        copy_part<BLOCK_M, BLOCK_K, X_ALIGN>(to, rows, part * BLOCK_K, of.row_bytes);
        copy_part<BLOCK_N, BLOCK_K, 16>(to + BLOCK_M * BLOCK_K, channels, part * BLOCK_K, of.row_bytes);
    };
    auto compute = [&](i32, i32 stage) {
        const u32 x_part = shared + stage * STAGE_BYTES, w_part = x_part + BLOCK_M * BLOCK_K;
        multiply_part(sums, x_part, w_part, warp, [](u32 (&)[4]) {},
                      [](f32 (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) { multiply_add<ELEMENT>(d, a, b0, b1); });
    };
    for_each_part((of.row_bytes - 1) / BLOCK_K + 1, copy, compute);
    finish_floats(sums, reinterpret_cast<f32*>(stages), warp, rows, channels, after);
}
