// Weights of groups, in the place of the first group's that parameters tell of: `Groups::launch` in groups.rs.
#pragma once
#include "groups.cuh"
#include "linear/epilogue.cuh"

// Packed weights of some groups, of one layout; `MOST_GROUPS` of groups.rs.
struct GroupWeights {
    const u8* of[256];
};

// What all groups have in common: `groups.rs` passes the same fields in the same order.
struct Common {
    // Where weights have their parts, in bytes; `Operands` and `Epilogue` tell which there are.
    i64 scales, offsets, sums, kept, outliers;
    // What multiplies the tokens' scales, slot by slot; null where nothing does.
    const f32* x_factors;
    i64 x_factors_stride;
    // Rows of the result. Of groups, those from `first_group` on have their weights here.
    i32 rows, first_group, weights_count;
    // Whether rows are tokens of x; whether one scale of all rows is one of each group's; whether blocks are one a row.
    i32 gathered, own_scales, by_row;

    DEVICE bool has(i32 group) const { return group >= first_group && group - first_group < weights_count; }
};

// A part of a group's weights, where there is one.
template <typename T> DEVICE void move_to(const T*& part, const u8* weights, i64 at) {
    if (part != nullptr) part = reinterpret_cast<const T*>(weights + at);
}

template <> DEVICE void move_to<void>(const void*& part, const u8* weights, i64 at) {
    if (part != nullptr) part = weights + at;
}

DEVICE void move_epilogue(Epilogue& after, const Common& common, const u8* weights, i32 group) {
    move_to(after.w_scales, weights, common.scales);
    move_to(after.w_outliers, weights, common.outliers);
    if (after.bias != nullptr) after.bias += static_cast<i64>(group) * after.results * (1 + after.gated);
    if (common.own_scales) after.x_scales += group;
}
