// Rows of groups: which group a row belongs to, and where it came from. `RowGroups` in linear/groups.rs.
#pragma once
#include "team.cuh"

struct Groups {
    // [count + 1]: group g has the rows offsets[g] to offsets[g + 1], where each counts as at least the one before it. Null
    // where rows are slots as they come, and a row's group is its expert.
    const i32* offsets;
    // Of rows that were sorted: the slot of each.
    const i32* slots;
    // [tokens, top_k]: the experts of slots.
    const i32* ids;
    i64 ids_stride;
    i32 count, top_k, first_expert;

    // -1 where it belongs to none. All lanes of a warp ask for the same row.
    DEVICE i32 group_of(i64 row) const {
        if (offsets == nullptr) {
            const u32 place = static_cast<u32>(ids[row / top_k * ids_stride + row % top_k]) - static_cast<u32>(first_expert);
            return place < static_cast<u32>(count) ? static_cast<i32>(place) : -1;
        }
        // The first offset beyond the row ends its group, whatever comes after.
        const i32 lane = threadIdx.x % 32;
        for (i64 base = 0; base <= count; base += 32) {
            const u32 beyond = __ballot_sync(ALL_LANES, base + lane <= count && offsets[base + lane] > row);
            if (beyond != 0) return static_cast<i32>(base) + __ffs(static_cast<i32>(beyond)) - 2;
        }
        return -1;
    }

    // Token times top_k, plus which of the token's experts.
    DEVICE i64 slot_of(i64 row) const { return slots == nullptr ? row : slots[row]; }
};

// What `RowGroups::parameters` passes.
#define GROUPS_PARAMETERS                                                                                                    \
    const i32 *group_offsets, const i32 *group_slots, const i32 *group_ids, i64 group_ids_stride, i32 group_count,           \
        i32 group_top_k, i32 group_first
#define GROUPS_ARGUMENTS                                                                                                     \
    { group_offsets, group_slots, group_ids, group_ids_stride, group_count, group_top_k, group_first }
