// Experts' rows before a product: the tokens' rows, or what the function between the layers makes of the first layer's, as
// floats or as integers of any format. Rows that nobody has are neither read nor written. Types are told at run time.
#include "activation_row.cuh"
#include "element.cuh"
#include "groups.cuh"
#include "quantize/rows.cuh"

// No function.
constexpr i32 NONE = -1;

// Where rows come from; `RowSource` in rows.rs passes it.
struct ExpertRows {
    const void* x;
    // [tokens, top_k]: what a slot's row is multiplied with, rounded; null where it is not.
    const f32* factors;
    i64 x_stride, factors_stride;
    i32 type;
    // Whether rows of x are tokens.
    i32 gathered;
    i32 gated;
    // Whether what the function gives is rounded to the type of x.
    i32 is_rounded;
    Activated activated;
    Groups groups;
    // [experts, kept_count]: ascending columns that are 0, their values being kept in float.
    const i32* kept_columns;
    i32 kept_count;
};

// A row that an expert has, as a source of rows.
struct ExpertRow {
    const ExpertRows& from;
    i64 start, columns;
    const i32* kept;
    f32 factor;

    DEVICE ExpertRow(const ExpertRows& rows, i64 row, i32 expert, i64 width)
        : from(rows), columns(width), kept(rows.kept_columns + static_cast<i64>(expert) * rows.kept_count), factor(1.0f) {
        const i64 slot = rows.gathered ? rows.groups.slot_of(row) : row, top_k = rows.groups.top_k;
        start = (rows.gathered ? slot / top_k : row) * rows.x_stride;
        if (rows.factors != nullptr) factor = rows.factors[slot / top_k * rows.factors_stride + slot % top_k];
    }

    DEVICE void open(i64, i64, const Team&) {}

    DEVICE f32 at(i64 c) const { return element(from.x, start + c, from.type); }

    DEVICE f32 value(i64 c) const {
        f32 y;
        if (from.gated) {
            const i64 g = from.activated.interleaved ? 2 * c : c, u = from.activated.interleaved ? 2 * c + 1 : columns + c;
            y = unit(at(g), at(u), from.activated);
        } else {
            y = from.activated.function == NONE ? at(c) : activate(from.activated.function, at(c));
        }
        if (from.factors != nullptr) y = __fmul_rn(y, factor);
        return from.is_rounded ? rounded(y, from.type) : y;
    }

    DEVICE bool is_kept(i64 c) const {
        i32 low = 0, high = from.kept_count;
#pragma unroll 1
        while (low < high) {
            const i32 middle = (low + high) / 2;
            if (kept[middle] < c) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low < from.kept_count && kept[low] == c;
    }

    DEVICE void four(f32 (&y)[4], i64 c, i64 end) const {
        // One body for all four, which stay in registers.
#pragma unroll 1
        for (i32 i = 0; i < 4; i++) {
            const f32 each = c + i < end && !is_kept(c + i) ? value(c + i) : 0.0f;
#pragma unroll
            for (i32 j = 0; j < 4; j++) y[j] = i == j ? each : y[j];
        }
    }
};

#define ROWS_PARAMETERS                                                                                                      \
    const void *x, const f32 *x_factors, const i32 *kept_columns, i64 x_stride, i64 factors_stride, i32 type, i32 gathered,    \
        i32 gated, i32 is_rounded, i32 kept_count, i32 function, i32 interleaved, f32 alpha, f32 limit, GROUPS_PARAMETERS
#define ROWS_ARGUMENTS                                                                                                       \
    {x,        x_factors,  x_stride,         factors_stride, type,        gathered, gated, is_rounded,                       \
     {function, interleaved, alpha, limit}, GROUPS_ARGUMENTS, kept_columns, kept_count}

DEVICE void quantize_row(const ExpertRows& from, Integers<f32> integers, void* kept, i64 kept_stride, i32 lanes) {
    const Team team = Team::of(lanes);
    const i64 number = team.number();
    const i32 expert = number < integers.rows ? from.groups.group_of(number) : -1;
    // A team as a whole.
    if (expert < 0) return;
    const ExpertRow row(from, number, expert, integers.columns);
    if (integers.scales_from == GIVEN) {
        integers.scales += expert;
        if (integers.zeros) integers.zeros += expert;
    }
    for (i32 which = team.lane; which < from.kept_count; which += team.lanes) {
        const i64 c = row.kept[which];
        put(kept, number * kept_stride + which, c >= 0 && c < integers.columns ? row.value(c) : 0.0f, from.type);
    }
    integers.run(row, lanes);
}

// To integers. Scales that are given are the experts'.
KERNEL void __launch_bounds__(BLOCK, BLOCKS)
    experts_quantize(ROWS_PARAMETERS, void* values, i64 values_stride, QUANTIZE_PARAMETERS(f32)) {
    const ExpertRows from = ROWS_ARGUMENTS;
    const Integers<f32> integers = QUANTIZE_ARGUMENTS;
    quantize_row(from, integers, values, values_stride, lanes);
}

// One scale of all rows of each expert, a block an expert.
KERNEL void __launch_bounds__(BLOCK, BLOCKS)
    experts_scales(ROWS_PARAMETERS, f32* scales, i32* zeros, i64 rows, i64 columns, i32 asymmetric, i32 is_unsigned) {
    const ExpertRows from = ROWS_ARGUMENTS;
    const i32 expert = blockIdx.x;
    const bool is_sorted = from.groups.offsets != nullptr;
    const i64 first = is_sorted ? from.groups.offsets[expert] : 0, last = is_sorted ? from.groups.offsets[expert + 1] : rows;
    Range all = {0, 0};
    // A warp a row.
    for (i64 number = first + threadIdx.x / 32; number < last; number += BLOCK / 32) {
        if (!is_sorted && from.groups.group_of(number) != expert) continue;
        const ExpertRow row(from, number, expert, columns);
        const Range range = range_of(row, Prepare{nullptr, nullptr, 0}, 0, columns, Team::of(32));
        all = {Most{}(all.below, range.below), Most{}(all.above, range.above)};
    }
    all = {join_team<BLOCK>(all.below, Most{}), join_team<BLOCK>(all.above, Most{})};
    if (threadIdx.x == 0) {
        const Steps steps = steps_of(all, format_of(asymmetric, is_unsigned));
        scales[expert] = steps.scale;
        if (zeros) zeros[expert] = steps.zero;
    }
}

// To floats of the type of x: a block a part of a row.
KERNEL void __launch_bounds__(BLOCK, BLOCKS)
    experts_floats(ROWS_PARAMETERS, void* out, i64 out_stride, i64 columns, i64 parts) {
    const ExpertRows from = ROWS_ARGUMENTS;
    const i64 number = blockIdx.x / parts, c = blockIdx.x % parts * BLOCK + threadIdx.x;
    const i32 expert = from.groups.group_of(number);
    if (expert < 0 || c >= columns) return;
    put(out, number * out_stride + c, ExpertRow(from, number, expert, columns).value(c), type);
}
