// Rows to integers, a team a row, whatever the rows come from.
//
// A source of rows has `open(outer, inner, team)`, which all of a team call, and then `four(y, c, end)`: columns c to
// c + 4, those from `end` on being 0. A row's values are asked for as often as they are needed, and are the same each time.
#pragma once
#include "quantize/steps.cuh"
#include "team.cuh"

// Where scales come from; `Scales` in rows.rs.
constexpr i32 OWN = 0, GIVEN = 1, FOUND = 2;

// Blocks of a multiprocessor that the compiler has to leave room for: told none, it spills registers to make room for more.
constexpr i32 BLOCKS = 2;

// What happens to a row before.
struct Prepare {
    const f32* factors;  // columns are divided by them; null where by none
    const i32* outliers; // ascending columns that are set to 0
    i32 aside;           // how many

    DEVICE f32 smoothed(f32 y, i64 c) const { return factors ? y / factors[c] : y; }

    DEVICE bool is_aside(i64 c) const {
        i32 low = 0, high = aside;
#pragma unroll 1
        while (low < high) {
            const i32 middle = (low + high) / 2;
            if (outliers[middle] < c) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low < aside && outliers[low] == c;
    }

    template <typename Source> DEVICE void four(f32 (&y)[4], const Source& source, i64 c, i64 end) const {
        source.four(y, c, end);
        if (!factors && aside == 0) return;
#pragma unroll
        for (i32 i = 0; i < 4; i++) {
            if (c + i < end) y[i] = is_aside(c + i) ? 0.0f : smoothed(y[i], c + i);
        }
    }
};

// The range of columns start to end, by a team.
template <typename Source>
DEVICE Range range_of(const Source& source, const Prepare& prepare, i64 start, i64 end, const Team& team) {
    Range range = {0, 0};
    for (i64 c = start + 4 * team.lane; c < end; c += 4 * team.lanes) {
        f32 y[4];
        prepare.four(y, source, c, end);
#pragma unroll
        for (i32 i = 0; i < 4; i++) {
            // What stands for columns that are not there is 0, which every range has.
            include(range, y[i]);
        }
    }
    return {team.join(range.below, Most{}), team.join(range.above, Most{})};
}

// The integers of columns start to end.
template <typename Source>
DEVICE void write_integers(u8* q, const Source& source, const Prepare& prepare, const Steps& steps, const Format& format,
                           i64 start, i64 end, const Team& team) {
    const bool in_words = has_fours(q + start);
    for (i64 c = start + 4 * team.lane; c < end; c += 4 * team.lanes) {
        f32 y[4];
        prepare.four(y, source, c, end);
        u32 word = 0;
#pragma unroll
        for (i32 i = 0; i < 4; i++) word |= static_cast<u32>(byte_of(y[i], steps, format)) << (8 * i);
        if (in_words && c + 4 <= end) {
            *reinterpret_cast<u32*>(q + c) = word;
        } else {
#pragma unroll
            for (i32 i = 0; i < 4; i++) {
                if (c + i < end) q[c + i] = static_cast<u8>(word >> (8 * i));
            }
        }
    }
}

// Where integers go. `rows::integers` in rows.rs passes these parameters, in this order; Kept is the type of outliers' values.
#define QUANTIZE_PARAMETERS(Kept)                                                                                            \
    u8 *q, f32 *scales, i32 *zeros, const f32 *factors, const i32 *outliers, Kept *kept, const u32 *ranges, i64 rows,        \
        i64 inner, i64 columns, i64 group, i64 groups, i64 q_outer, i64 q_inner, i64 scales_outer, i64 scales_inner,         \
        i64 zeros_outer, i64 zeros_inner, i64 kept_outer, i64 kept_inner, i32 aside, i32 range_count, i32 lanes,             \
        i32 scales_from, i32 asymmetric, i32 is_unsigned
#define QUANTIZE_ARGUMENTS                                                                                                   \
    {q,           scales,      zeros,       kept,       ranges,     rows,        inner,       columns,                       \
     group,       groups,      q_outer,     q_inner,    scales_outer, scales_inner, zeros_outer, zeros_inner,                \
     kept_outer,  kept_inner,  range_count, scales_from, format_of(asymmetric, is_unsigned), {factors, outliers, aside}}

template <typename Kept> struct Integers {
    u8* q;
    f32* scales;
    i32* zeros;
    Kept* kept;
    const u32* ranges;
    i64 rows, inner, columns, group, groups;
    i64 q_outer, q_inner, scales_outer, scales_inner, zeros_outer, zeros_inner, kept_outer, kept_inner;
    i32 range_count, scales_from;
    Format format;
    Prepare prepare;

    // The steps of all rows, of what each block of `quantize_range` has found. All threads of a block call it.
    DEVICE Steps found() const {
        Range range = {0, 0};
        for (i32 i = threadIdx.x; i < range_count; i += BLOCK) {
            range.below = Most{}(range.below, ranges[2 * i]);
            range.above = Most{}(range.above, ranges[2 * i + 1]);
        }
        const Range all = {join_team<BLOCK>(range.below, Most{}), join_team<BLOCK>(range.above, Most{})};
        return steps_of(all, format);
    }

    DEVICE void write_steps(i64 scale_at, i64 zero_at, const Steps& steps) const {
        scales[scale_at] = steps.scale;
        if (zeros) zeros[zero_at] = steps.zero;
    }

    // A segment of a row, which has a scale of its own or takes the one of all rows.
    template <typename Source>
    DEVICE void segment(const Source& source, Steps steps, i64 o, i64 i, i64 which, const Team& team) const {
        const i64 start = which * group;
        const i64 end = start + group < columns ? start + group : columns;
        if (scales_from == OWN) {
            steps = steps_of(range_of(source, prepare, start, end, team), format);
            if (team.lane == 0) {
                write_steps(o * scales_outer + i * scales_inner + which, o * zeros_outer + i * zeros_inner + which, steps);
            }
        }
        write_integers(q + o * q_outer + i * q_inner, source, prepare, steps, format, start, end, team);
    }

    template <typename Source> DEVICE void run(Source source, i32 lanes) const {
        const Team team = Team::of(lanes);
        const i64 number = team.number();
        Steps steps = {};
        if (scales_from == FOUND) {
            steps = found();
            if (number == 0 && team.lane == 0) write_steps(0, 0, steps);
        }
        if (number >= rows) return;
        const i64 o = number / inner, i = number % inner;
        source.open(o, i, team);
        for (i32 which = team.lane; which < prepare.aside; which += team.lanes) {
            const i64 c = prepare.outliers[which];
            f32 y[4] = {};
            if (c >= 0 && c < columns) {
                source.four(y, c, c + 1);
                y[0] = prepare.smoothed(y[0], c);
            }
            kept[o * kept_outer + i * kept_inner + which] = narrow<Kept>(y[0]);
        }
        if (scales_from == GIVEN) steps = given_steps(scales[0], zeros ? zeros[0] : 0, format);
        // The team a row, or a warp a group.
        const Team sharing = groups == 1 ? team : Team::of(32);
#pragma unroll 1
        for (i64 which = team.lane / sharing.lanes; which < groups; which += team.lanes / sharing.lanes) {
            segment(source, steps, o, i, which, sharing);
        }
    }
};
