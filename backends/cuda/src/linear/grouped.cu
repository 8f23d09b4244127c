// Products of groups of rows with weights of their own, by dot products.

#include "groups.cuh"
#include "linear/dot.cuh"

// Packed weights of some groups, of one layout; `MOST_GROUPS` of groups.rs.
struct GroupWeights {
    const u8* of[256];
};

// Where a group's weights have their parts, in bytes; `Operands` and `Epilogue` tell which there are.
struct Parts {
    i64 scales, offsets, kept, outliers;
};

// Results of a row, a warp each; rows along x of the grid, blocks of results along y. Of those groups from `first_group` on
// whose weights are here. With `gathered`, rows are tokens of x; `x_factors` multiply the tokens' scales, slot by slot. With
// `own_scales` one scale of all rows is one of each group's.
KERNEL void __launch_bounds__(BLOCK, 4)
    grouped_dot(const __grid_constant__ GroupWeights weights, Operands of, Epilogue after, Parts parts, const f32* x_factors,
                i64 x_factors_stride, i32 first_group, i32 weights_count, i32 gathered, i32 own_scales, GROUPS_PARAMETERS) {
    const i64 row = blockIdx.x, result = static_cast<i64>(blockIdx.y) * (BLOCK / 32) + threadIdx.x / 32;
    // A warp as a whole, here and below.
    if (result >= after.results) return;
    const Groups rows = GROUPS_ARGUMENTS;
    const i32 group = rows.group_of(row);
    if (group < first_group || group - first_group >= weights_count) return;
    const i64 slot = gathered ? rows.slot_of(row) : row, x_row = gathered ? slot / rows.top_k : row;
    const f32 factor = x_factors == nullptr ? 1.0f : x_factors[slot / rows.top_k * x_factors_stride + slot % rows.top_k];
    // The parts of this group's weights in the place of the first one's.
    const u8* w = weights.of[group - first_group];
    of.w = w;
    if (of.w_scales != nullptr) of.w_scales = reinterpret_cast<const f32*>(w + parts.scales);
    if (of.offsets != nullptr) of.offsets = w + parts.offsets;
    if (of.kept != nullptr) of.kept = w + parts.kept;
    if (after.w_scales != nullptr) after.w_scales = of.w_scales;
    if (after.w_outliers != nullptr) after.w_outliers = reinterpret_cast<const f32*>(w + parts.outliers);
    if (after.bias != nullptr) after.bias += static_cast<i64>(group) * after.results * (1 + after.gated);
    if (own_scales) {
        of.x_scales += group;
        after.x_scales += group;
        if (of.x_zeros != nullptr) of.x_zeros += group;
    }
    dot_result(of, after, x_row, row, result, factor);
}
