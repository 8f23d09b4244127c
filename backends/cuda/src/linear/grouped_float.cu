// Products of groups of rows with weights of their own, of F16 or BF16, by the tensor cores.

#include "linear/float.cuh"
#include "linear/group_rows.cuh"

// Blocks of rows along x of the grid, of results along y.
KERNEL void __launch_bounds__(Tile::THREADS, Tile::BLOCKS)
    grouped_float(const __grid_constant__ GroupWeights weights, Operands of, Epilogue after, Common common, GROUPS_PARAMETERS) {
    extern __shared__ __align__(128) u8 stages[];
    const Groups groups = GROUPS_ARGUMENTS;
    const GroupTile tile = tile_of(groups, static_cast<i32>(blockIdx.x), common.rows, common.by_row);
    // The block as a whole.
    if (!common.has(tile.group) || tile.first >= tile.end) return;
    const u8* const w = weights.of[tile.group - common.first_group];
    of.w = w;
    move_epilogue(after, common, w, tile.group);
    const GroupRows rows = look_up_rows(tile, groups, common, of.x, of.x_stride, stages + STAGES * STAGE_BYTES);
    multiply_tile(of, after, rows, stages);
}
