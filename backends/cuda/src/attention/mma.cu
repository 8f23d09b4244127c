// Attention by the tensor cores: F16 or BF16 queries over keys and values of the same type, or of INT8, which either type
// holds. A block of four warps has some query rows of one KV head, as attend.cu has, and walks positions from left to right, a
// step of 32 at a time; the next step's keys and values come meanwhile. A warp has 16 rows and a slice of the values'
// columns: few rows are shared by four warps, each of which makes all weights for its own slice.
//
// Weights are relative to the greatest score that a row has seen of the part, and what was summed before is scaled when that
// grows. A weight is multiplied in parts that are exact together, or nearly so, and everything is summed in F32. A part's
// state is joined to that of the parts before it. Every sum goes by positions alone: those that a row does not see weigh 0.
//
// Chosen where it is compiled: ELEMENT, f16 or bf16; INT8, whether keys and values are; COLUMNS of values of a warp at most,
// 64 with 16 rows a block, 128 with 64 rows, or 32 where values have more columns.
#include "attention/products.cuh"

// A query row of a lane.
struct Row {
    Positions seen;
    Known part, known; // of the part, and of the parts before
    i32 index, own;    // in the tile; its position
    f32 slope;
};

struct Larger {
    DEVICE f32 operator()(f32 a, f32 b) const { return fmaxf(a, b); }
};

// What the four lanes of a row have, joined.
template <typename Join> DEVICE f32 join_row(f32 value, Join join) {
    value = join(value, __shfl_xor_sync(ALL_LANES, value, 1));
    return join(value, __shfl_xor_sync(ALL_LANES, value, 2));
}

// Makes sums of products scores, and then weights, those of positions that a row does not see 0; `seen` are the others, as
// bits, `factors` what the rows' sums so far are to be multiplied with.
DEVICE void weigh(const Call& call, const Tile& tile, f32 (&scores)[STEP / 8][4], Row (&rows)[2], u32 (&seen)[2],
                  f32 (&factors)[2], const Step& step, const f32* key_scales, i32 lane) {
    const Positions read = positions_of(call, tile, step);
    f32 most[2] = {LOWEST, LOWEST};
#pragma unroll
    for (i32 i = 0; i < STEP / 8; i++) {
#pragma unroll
        for (i32 c = 0; c < 4; c++) {
            const i32 place = 8 * i + lane % 4 * 2 + c % 2, position = step.first + place;
            const Row& row = rows[c / 2];
            const bool there = position >= max(row.seen.first, read.first) && position < min(row.seen.end, read.end);
            if (!there || !sees(call, tile, row.index, position)) continue;
            seen[c / 2] |= 1u << place;
            const f32 scale = INT8 ? key_scales[place] * call.scale : call.scale;
            scores[i][c] = biased(call, row.slope, row.own, position, scale * scores[i][c]);
            most[c / 2] = fmaxf(most[c / 2], scores[i][c]);
        }
    }
    f32 sums[2] = {};
#pragma unroll
    for (i32 half = 0; half < 2; half++) {
        const f32 greatest = fmaxf(rows[half].part.most, join_row(most[half], Larger()));
        factors[half] = expf(rows[half].part.most - greatest);
        rows[half].part.most = greatest;
    }
#pragma unroll
    for (i32 i = 0; i < STEP / 8; i++) {
#pragma unroll
        for (i32 c = 0; c < 4; c++) {
            const bool is_seen = (seen[c / 2] >> (8 * i + lane % 4 * 2 + c % 2) & 1u) != 0;
            scores[i][c] = is_seen ? expf(scores[i][c] - rows[c / 2].part.most) : 0.0f;
            sums[c / 2] += scores[i][c];
        }
    }
    // Of this lane's positions; lanes are joined when the part is over.
#pragma unroll
    for (i32 half = 0; half < 2; half++) rows[half].part.sum = fmaf(rows[half].part.sum, factors[half], sums[half]);
}

// Weights as they multiply values.
DEVICE void scale_weights(f32 (&weights)[STEP / 8][4], const u32 (&seen)[2], const f32* value_scales, i32 lane) {
#pragma unroll
    for (i32 i = 0; i < STEP / 8; i++) {
#pragma unroll
        for (i32 c = 0; c < 4; c++) {
            const i32 place = 8 * i + lane % 4 * 2 + c % 2;
            const f32 scale = INT8 ? value_scales[place] : ValueParts::scale();
            if ((seen[c / 2] >> place & 1u) != 0) weights[i][c] *= scale;
        }
    }
}

KERNEL void __launch_bounds__(THREADS, COLUMNS == 64 && !INT8 ? 3 : 2) attend_mma(CALL_PARAMETERS) {
    const Call call = CALL_ARGUMENTS;
    extern __shared__ __align__(128) u8 memory[];
    __shared__ i64 cache_rows[2][STEP];
    __shared__ f32 scales[2][2][STEP]; // of a turn, keys' and values'
    const Tile tile = tile_of(call, blockIdx.x);
    const Positions all = tile.positions;
    const u32 shared = shared_address(memory);
    const i32 slices = COLUMNS == 64 ? 4 : call.value_dim > COLUMNS ? 2 : 1;
    const i32 block_rows = 16 * (THREADS / 32 / slices);
    const Room room = Room::of(call, block_rows);

    Warp warp;
    warp.lane = threadIdx.x % 32;
    warp.row = threadIdx.x / 32 / slices * 16;
    const i32 units = call.value_dim / UNIT, each = (units + slices - 1) / slices;
    warp.unit = threadIdx.x / 32 % slices * each;
    warp.units = max(min(each, units - warp.unit), 0);
    const bool takes_part = warp.row < tile.rows() && warp.units > 0;

    const bool begins = tile.whole && call.in_max != nullptr;
    Row rows[2];
    f32 state[UNITS][2][4] = {}, sums[UNITS][2][4] = {};
#pragma unroll
    for (i32 half = 0; half < 2; half++) {
        Row& row = rows[half];
        row.index = warp.row + 8 * half + warp.lane / 4;
        row.seen = {0, 0};
        row.part = row.known = {LOWEST, 0.0f};
        row.own = tile.own + tile.token(row.index);
        row.slope = 0.0f;
        if (row.index >= tile.rows()) continue;
        const i64 token = tile.first_token + tile.token(row.index), head = tile.head(row.index);
        row.seen = visible(call.mask, call.span, row.own, tile.read);
        if (call.slopes != nullptr) row.slope = call.slopes[head];
        if (!begins) continue;
        row.known = {call.in_max[token * call.in_max_token + head], call.in_sum[token * call.in_sum_token + head]};
        const f32* values = call.in_values + token * call.in_token + head * call.in_head;
#pragma unroll
        for (i32 i = 0; i < 2 * UNITS; i++) {
            if (i / 2 >= warp.units) break;
#pragma unroll
            for (i32 c = 0; c < 2; c++) state[i / 2][i % 2][2 * half + c] = values[warp.column(i / 2, i % 2) + c];
        }
    }

    auto find_row = [&](const Step& step) {
        const i32 position = step.first + warp.lane;
        const Positions read = positions_of(call, tile, step);
        return position >= read.first && position < read.end ? cache_row(call, tile, position) : 0;
    };
    auto copy = [&](const Step& step, i32 turn) {
        copy_step(call, tile, room, step, cache_rows[turn], shared + room.place(turn));
#if INT8
        copy_scales(call, tile, step, cache_rows[turn], scales[turn]);
#endif
        copy_async_commit();
    };
    // Begins a walk: nobody needs what shared memory has.
    auto begin = [&](const Step& step, i32 turn) {
        if (threadIdx.x < STEP) {
            cache_rows[turn][warp.lane] = find_row(step);
            cache_rows[1 - turn][warp.lane] = find_row(after(call, step));
        }
        __syncthreads();
        copy(step, turn);
    };

    Step now = step_of(call, all.first);
    i32 turn = 0;
    // Whether values that are not finite are told apart: where some weighed on a part, it is read once more.
    bool careful = false;
    if (all.first < all.end) {
        copy_queries(call, tile, room, memory, block_rows);
        begin(now, turn);
    }
    while (now.first < all.end) {
        const Step next = after(call, now);
        copy_async_wait<0>();
        // After it this step has come for everybody, and everybody has read the one whose place is filled next.
        __syncthreads();
        if (next.first < all.end) copy(next, 1 - turn);
        i64 later = 0;
        if (threadIdx.x < STEP) later = find_row(after(call, next));
#if INT8
        const u8* bytes = memory + room.place(turn);
        widen_rows<ELEMENT>(shared + room.keys(turn), room.key_stride, bytes, room.key_bytes);
        widen_rows<Value>(shared + room.values(turn), room.value_stride, bytes + STEP * room.key_bytes, room.value_bytes);
        __syncthreads();
#endif
        if (takes_part) {
            f32 weights[STEP / 8][4] = {};
            multiply_keys(weights, shared, shared + room.keys(turn), room.key_stride, call.head_dim, warp);
            u32 seen[2] = {};
            f32 factors[2];
            weigh(call, tile, weights, rows, seen, factors, now, scales[turn][0], warp.lane);
            scale_weights(weights, seen, scales[turn][1], warp.lane);
            if (__any_sync(ALL_LANES, factors[0] != 1.0f || factors[1] != 1.0f)) {
#pragma unroll
                for (i32 i = 0; i < 8 * UNITS; i++) sums[i / 8][i / 4 % 2][i % 4] *= factors[i / 2 % 2];
            }
            const u8* values = memory + room.values(turn);
            if (!INT8 && careful && has_unfinite(values, room.value_stride, warp)) {
                multiply_values<true>(sums, weights, shared + room.values(turn), room.value_stride, warp);
                add_unfinite(sums, values, room.value_stride, seen, warp);
            } else {
                multiply_values<false>(sums, weights, shared + room.values(turn), room.value_stride, warp);
            }
        }
        // Whoever copied by what lay here has done so.
        if (threadIdx.x < STEP) cache_rows[turn][warp.lane] = later;
        if (next.part != now.part || next.first >= all.end) {
            bool again = false;
            if (!INT8 && !careful) {
                bool unfinite = false;
#pragma unroll
                for (i32 i = 0; i < 8 * UNITS; i++) unfinite = unfinite || isnan(sums[i / 8][i / 4 % 2][i % 4]);
                again = __syncthreads_or(unfinite);
            }
            if (!again) {
#pragma unroll
                for (i32 half = 0; half < 2; half++) {
                    Row& row = rows[half];
                    const Joined joins = joined(row.known, {row.part.most, join_row(row.part.sum, Add())});
                    row.known = joins.known;
                    const f32 scale = INT8 ? 1.0f : 1.0f / ValueParts::scale();
#pragma unroll
                    for (i32 i = 0; i < 4 * UNITS; i++) {
                        const i32 unit = i / 4, of_unit = i / 2 % 2, c = 2 * half + i % 2;
                        state[unit][of_unit][c] = joined_value(joins, state[unit][of_unit][c], sums[unit][of_unit][c] * scale);
                    }
                }
            }
            // The next part's sums, or this one's once more.
#pragma unroll
            for (i32 half = 0; half < 2; half++) rows[half].part = {LOWEST, 0.0f};
#pragma unroll
            for (i32 i = 0; i < 8 * UNITS; i++) sums[i / 8][i / 4 % 2][i % 4] = 0.0f;
            careful = again;
            if (again) {
                now = step_of(call, max(all.first, now.part));
                copy_async_wait<0>();
                begin(now, turn);
                continue;
            }
        }
        now = next;
        turn = 1 - turn;
    }
    if (!takes_part) return;

#pragma unroll
    for (i32 half = 0; half < 2; half++) {
        const Row& row = rows[half];
        if (row.index >= tile.rows()) continue;
        const i64 token = tile.first_token + tile.token(row.index), head = tile.head(row.index);
        const bool first = warp.lane % 4 == 0 && warp.unit == 0;
        if (call.out == nullptr) {
            f32* record = call.scratch + scratch_at(call, tile, row.index);
#pragma unroll
            for (i32 i = 0; i < 2 * UNITS; i++) {
                if (i / 2 >= warp.units) break;
                const f32(&values)[4] = state[i / 2][i % 2];
                *reinterpret_cast<Pair<f32>*>(record + warp.column(i / 2, i % 2)) = {values[2 * half], values[2 * half + 1]};
            }
            if (first) *reinterpret_cast<Pair<f32>*>(record + call.value_dim) = {row.known.most, row.known.sum};
            continue;
        }
        const Ending last = ending(row.known, call.sinks == nullptr ? nullptr : call.sinks + head);
        ELEMENT* out = static_cast<ELEMENT*>(call.out) + token * call.out_token + head * call.out_head;
#pragma unroll
        for (i32 i = 0; i < 2 * UNITS; i++) {
            if (i / 2 >= warp.units) break;
            const f32(&values)[4] = state[i / 2][i % 2];
#pragma unroll
            for (i32 c = 0; c < 2; c++) out[warp.column(i / 2, i % 2) + c] = narrow<ELEMENT>(last.of(values[2 * half + c]));
        }
        if (call.log_sum_exp != nullptr && first) call.log_sum_exp[token * call.log_token + head] = last.log;
    }
}
