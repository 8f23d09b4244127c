// Rows of groups as tiles take them: a block has rows of one group, which it finds for itself.
#pragma once
#include "linear/group_weights.cuh"
#include "linear/tile.cuh"

// Rows `first` to `end` of the result, of one group; -1 and none where the block has nothing to do.
struct GroupTile {
    i32 group, first, end;
};

constexpr GroupTile NO_TILE = {-1, 0, 0};

// The rows of a block. Of sorted rows, group g has the blocks from g + offsets[g] / BLOCK_M on, to where the next one's begin:
// at least as many as it has tiles. Where rows are fewer than such blocks, `by_row` gives a block to each row, of which those at
// the beginning of a tile work. Slots as they come are tiles of one row.
DEVICE GroupTile tile_of(const Groups& groups, i32 block, i32 rows, bool by_row) {
    if (groups.offsets == nullptr) return {groups.group_of(block), block, block + 1};
    const i32 lane = threadIdx.x % 32;
    i32 most = 0;
    for (i32 base = 0; base <= groups.count; base += 32) {
        // Each counts as at least the one before it, and at most the number of rows.
        i32 offset = base + lane <= groups.count ? min(groups.offsets[base + lane], rows) : rows;
        const i32 before = most;
        offset = max(offset, before);
#pragma unroll
        for (i32 distance = 1; distance < 32; distance *= 2) {
            const i32 other = __shfl_up_sync(ALL_LANES, offset, distance);
            if (lane >= distance) offset = max(offset, other);
        }
        const i32 begin = by_row ? offset : offset / BLOCK_M + base + lane;
        const u32 beyond = __ballot_sync(ALL_LANES, base + lane > groups.count || begin > block);
        const i32 next = __ffs(static_cast<i32>(beyond)) - 1;
        // (All lanes ask, whatever they get.)
        const i32 end = __shfl_sync(ALL_LANES, offset, max(next, 0));
        const i32 start = __shfl_sync(ALL_LANES, offset, max(next - 1, 0));
        most = __shfl_sync(ALL_LANES, offset, 31);
        if (next < 0) continue;
        const i32 group = base + next - 1, own = next == 0 ? before : start;
        if (group < 0 || group >= groups.count) return NO_TILE;
        const i32 tile = by_row ? (block - own) / BLOCK_M : block - (own / BLOCK_M + group);
        const i32 first = own + tile * BLOCK_M;
        return by_row && first != block ? NO_TILE : GroupTile{group, first, min(first + BLOCK_M, end)};
    }
    return NO_TILE;
}

// A tile's rows: where each is in x, and what multiplies its scale, stand in shared memory.
struct GroupRows {
    const u8* matrix;
    i64 stride;
    const i32* sources;
    const f32* factors;
    i32 first, count;

    DEVICE bool has(i32 row) const { return row < count; }
    DEVICE const u8* at(i32 row) const { return matrix + sources[row] * stride; }
    DEVICE const u8* anywhere() const { return matrix; }
    DEVICE i64 source(i32 row) const { return sources[row]; }
    DEVICE i64 result(i32 row) const { return first + row; }
    DEVICE f32 factor(i32 row) const { return factors[row]; }
};

static_assert(Tile::THREADS >= BLOCK_M, "a thread looks up one row");

// Of a tile with rows. `table`: shared memory of 8 BLOCK_M bytes.
DEVICE GroupRows look_up_rows(const GroupTile& tile, const Groups& groups, const Common& common, const u8* x, i64 x_stride,
                              u8* table) {
    i32* const sources = reinterpret_cast<i32*>(table);
    f32* const factors = reinterpret_cast<f32*>(sources + BLOCK_M);
    const i32 own = threadIdx.x, row = tile.first + own;
    if (own < BLOCK_M && row < tile.end) {
        const i32 slot = common.gathered ? static_cast<i32>(groups.slot_of(row)) : row;
        sources[own] = common.gathered ? slot / groups.top_k : row;
        factors[own] = common.x_factors == nullptr
                           ? 1.0f
                           : common.x_factors[slot / groups.top_k * common.x_factors_stride + slot % groups.top_k];
    }
    // From here on all look at all of them.
    __syncthreads();
    return {x, x_stride, sources, factors, tile.first, tile.end - tile.first};
}
