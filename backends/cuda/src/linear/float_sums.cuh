// The way out of tiles whose sums are floats.
#pragma once
#include "linear/epilogue.cuh"
#include "linear/tile.cuh"

// Finishes and stores the tile's results. `slab`: shared memory of SLAB_WORDS that nobody needs any more.
template <typename Rows>
DEVICE void finish_floats(const f32 (&sums)[Tile::PRODUCTS_M][Tile::PRODUCTS_N][4], f32* slab, const Warp& warp,
                          const Rows& rows, const Channels& channels, const Epilogue& after) {
    const i32 columns = channels.columns(), column = own_column(columns);
    const i64 result = channels.result(column), up = result + after.results;
    const bool there = channels.has(column);
    Channel channel = {}, up_channel = {};
    if (there) {
        channel = channel_of(after, result);
        if (after.gated) up_channel = channel_of(after, up);
    }
    finish_tile(sums, slab, warp, columns, [&](i32 tile_row, f32 sum, f32 sum_of_up) {
        if (!there || !rows.has(tile_row)) return;
        const i64 x_row = rows.source(tile_row);
        const f32 factor = rows.factor(tile_row);
        const f32 y = scale_sum(after, sum, x_row, result, channel, factor);
        const f32 y_up = after.gated ? scale_sum(after, sum_of_up, x_row, up, up_channel, factor) : 0.0f;
        store_finished(after, y, y_up, rows.result(tile_row), result);
    });
}
