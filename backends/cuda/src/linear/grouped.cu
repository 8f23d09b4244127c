// Products of groups of rows with weights of their own, by dot products.

#include "linear/dot.cuh"
#include "linear/group_weights.cuh"

// Results of a row, a warp each; rows along x of the grid, blocks of results along y.
KERNEL void __launch_bounds__(BLOCK, 4)
    grouped_dot(const __grid_constant__ GroupWeights weights, Operands of, Epilogue after, Common common, GROUPS_PARAMETERS) {
    const i64 row = blockIdx.x, result = static_cast<i64>(blockIdx.y) * (BLOCK / 32) + threadIdx.x / 32;
    // A warp as a whole, here and below.
    if (result >= after.results) return;
    const Groups groups = GROUPS_ARGUMENTS;
    const i32 group = groups.group_of(row);
    if (!common.has(group)) return;
    const i64 slot = common.gathered ? groups.slot_of(row) : row, x_row = common.gathered ? slot / groups.top_k : row;
    const u8* const w = weights.of[group - common.first_group];
    of.w = w;
    move_to(of.w_scales, w, common.scales);
    move_to(of.offsets, w, common.offsets);
    move_to(of.kept, w, common.kept);
    move_epilogue(after, common, w, group);
    if (common.own_scales) {
        of.x_scales += group;
        if (of.x_zeros != nullptr) of.x_zeros += group;
    }
    const f32 factor = common.x_factors == nullptr
                           ? 1.0f
                           : common.x_factors[slot / groups.top_k * common.x_factors_stride + slot % groups.top_k];
    dot_result(of, after, x_row, row, result, factor);
}
