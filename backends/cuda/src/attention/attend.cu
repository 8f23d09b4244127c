// Attention in any type and shape: a block of 256 threads has some query rows of one KV head, and walks positions from left to
// right, a part at a time: scores, a thread a position; weights, a warp a row; weighted values, a thread four columns of a row.
// A part's state is joined to that of the parts before it. Every sum is one chain in ascending order or goes by positions alone:
// which other rows and positions a block has never shows in a row's bits.
//
// Chosen where it is compiled: ROWS, room for the rows of a block, and INT8, whether scores are of INT8 queries and keys.
#include "attention/call.cuh"
#include "attention/stage.cuh"
#include "attention/weigh.cuh"
#include "quantize/steps.cuh"

// Threads of a warp have neighbouring positions of the same rows, or fours of columns of two rows.
constexpr i32 SCORE_GROUPS = BLOCK / STAGED, SCORE_ROWS = (ROWS + SCORE_GROUPS - 1) / SCORE_GROUPS;
constexpr i32 QUADS = STAGED_WORDS / 4;
static_assert(ROWS <= BLOCK / QUADS, "a row has a group of threads of its own when values are weighted");

DEVICE void multiply_word(f32& sum, u32 a, u32 b) { sum = fmaf(__uint_as_float(a), __uint_as_float(b), sum); }

DEVICE void multiply_word(i32& sum, u32 a, u32 b) {
    asm("dp4a.s32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(a), "r"(b));
}

// What threads of a block share.
struct Shared {
    u32* queries; // [rows, query_words]
    u32* scores;  // [rows, part]
    u32* stage;   // [STAGED, STAGED_STRIDE]
    f32* values;  // [rows, value_words], of the state
    i64* rows;    // [part], of the cache
    i32 query_words, value_words;
    const Positions* seen; // between which each row sees
    const Joined* joins;
    f32 *query_scales, *factors;
};

DEVICE i32 round_to_four(i32 n) { return (n + 3) / 4 * 4; }

// The queries of a block, as words, 0 beyond the last element.
DEVICE void load_queries(const Call& call, const Tile& tile, const Shared& shared) {
    const i32 words = shared.query_words;
#if INT8
    const i32 lane = threadIdx.x % 32;
    const Format symmetric = format_of(0, 0);
    for (i32 row = threadIdx.x / 32; row < tile.rows(); row += BLOCK / 32) {
        const i64 at = query_at(call, tile, row);
        Range range = {0, 0};
        for (i32 d = lane; d < call.head_dim; d += 32) include(range, element(call.q, at + d, call.type));
        const Steps steps = steps_of({join_warp(range.below, Most()), join_warp(range.above, Most())}, symmetric);
        for (i32 word = lane; word < words; word += 32) {
            u32 packed = 0;
            for (i32 i = 0; i < 4 && 4 * word + i < call.head_dim; i++) {
                const u32 byte = byte_of(element(call.q, at + 4 * word + i, call.type), steps, symmetric);
                packed |= byte << (8 * i);
            }
            shared.queries[row * words + word] = packed;
        }
        if (lane == 0) shared.query_scales[row] = steps.scale;
    }
#else
    for (i32 i = threadIdx.x; i < tile.rows() * words; i += BLOCK) {
        const i32 row = i / words, d = i % words;
        const f32 x = d < call.head_dim ? element(call.q, query_at(call, tile, row) + d, call.type) : 0.0f;
        shared.queries[i] = __float_as_uint(x);
    }
#endif
}

// Scores of the part that begins at `part`: of positions `within` it what rows see, between them and in the rest of their fours
// `UNSEEN`.
DEVICE void score_part(const Call& call, const Tile& tile, const Shared& shared, const CacheRows& keys, i32 part,
                       const Positions& within) {
    const i32 place = threadIdx.x % STAGED, group = threadIdx.x / STAGED;
    for (i32 start = within.first / STAGED * STAGED; start < within.end; start += STAGED) {
        const Positions in_stage = {within.first - start, within.end - start};
        const i32 first = max(in_stage.first, 0) / 4 * 4, end = min(round_to_four(in_stage.end), STAGED);
        const bool takes_part = place >= first && place < end && group < tile.rows();
#if INT8
        i32 sums[SCORE_ROWS] = {};
#else
        f32 sums[SCORE_ROWS] = {};
#endif
        for (i32 word = 0; word < shared.query_words; word += STAGED_WORDS) {
            __syncthreads();
            stage_rows<INT8 ? PACKED : WIDENED>(shared.stage, keys, shared.rows + start, word, first, end, in_stage);
            __syncthreads();
            if (!takes_part) continue;
            const i32 count = min(STAGED_WORDS, shared.query_words - word);
            u32* key = shared.stage + place * STAGED_STRIDE;
            u32* query = shared.queries + group * shared.query_words + word;
            for (i32 at = 0; at < count; at += 4) {
                const Words k = *four_words(key + at);
#pragma unroll
                for (i32 i = 0; i < SCORE_ROWS; i++) {
                    if (group + i * SCORE_GROUPS >= tile.rows()) break;
                    const Words x = *four_words(query + i * SCORE_GROUPS * shared.query_words + at);
#pragma unroll
                    for (i32 lane = 0; lane < 4; lane++) multiply_word(sums[i], x.words[lane], k.words[lane]);
                }
            }
        }
        if (!takes_part) continue;
        const i32 position = part + start + place;
        const bool there = place >= in_stage.first && place < in_stage.end;
#pragma unroll
        for (i32 i = 0; i < SCORE_ROWS; i++) {
            const i32 row = group + i * SCORE_GROUPS;
            if (row >= tile.rows()) break;
            const Positions seen = shared.seen[row];
            u32 bits = UNSEEN;
            if (there && position >= seen.first && position < seen.end && sees(call, tile, row, position)) {
#if INT8
                const f32 key_scale = keys.scales[shared.rows[start + place]];
                const f32 score = static_cast<f32>(sums[i]) * (key_scale * (shared.query_scales[row] * call.scale));
#else
                const f32 score = call.scale * sums[i];
#endif
                const f32 slope = call.slopes == nullptr ? 0.0f : call.slopes[tile.head(row)];
                bits = bits_of(biased(call, slope, tile.own + tile.token(row), position, score));
            }
            shared.scores[row * call.part + start + place] = bits;
        }
    }
}

// Joins the part's weighted values to the state's, in the order of positions; with WHOLE of weights and values in 8 bits.
template <bool WHOLE_NUMBERS>
DEVICE void weigh_values(const Call& call, const Tile& tile, const Shared& shared, const CacheRows& values,
                         const Positions& within) {
    const i32 quad = threadIdx.x % QUADS, row = threadIdx.x / QUADS;
    for (i32 column = 0; column < call.value_dim; column += STAGED_WORDS) {
        const bool takes_part = row < tile.rows() && column + 4 * quad < call.value_dim;
        f32 sums[4] = {};
        i32 whole[4] = {};
        for (i32 start = within.first / STAGED * STAGED; start < within.end; start += STAGED) {
            const Positions in_stage = {within.first - start, within.end - start};
            const i32 first = max(in_stage.first, 0) / 4 * 4, end = min(round_to_four(in_stage.end), STAGED);
            __syncthreads();
            stage_rows<WHOLE_NUMBERS ? WHOLE : WIDENED>(shared.stage, values, shared.rows + start, column, first, end, in_stage);
            __syncthreads();
            if (!takes_part) continue;
            u32* weights = shared.scores + row * call.part + start;
            u32* value = shared.stage + 4 * quad;
            for (i32 place = first; place < end; place += 4) {
                const Words four = *four_words(weights + place);
#pragma unroll
                for (i32 k = 0; k < 4; k++) {
                    if (four.words[k] == UNSEEN) continue;
                    const Words v = *four_words(value + (place + k) * STAGED_STRIDE);
#pragma unroll
                    for (i32 c = 0; c < 4; c++) {
                        if constexpr (WHOLE_NUMBERS) {
                            whole[c] += static_cast<i32>(four.words[k]) * static_cast<i32>(v.words[c]);
                        } else {
                            multiply_word(sums[c], four.words[k], v.words[c]);
                        }
                    }
                }
            }
        }
        if (!takes_part) continue;
        f32* state = shared.values + row * shared.value_words + column + 4 * quad;
#pragma unroll
        for (i32 c = 0; c < 4; c++) {
            if constexpr (WHOLE_NUMBERS) sums[c] = static_cast<f32>(whole[c]) * shared.factors[row];
            state[c] = joined_value(shared.joins[row], state[c], sums[c]);
        }
    }
}

KERNEL void __launch_bounds__(BLOCK, 2) attend(CALL_PARAMETERS) {
    const Call call = CALL_ARGUMENTS;
    extern __shared__ __align__(16) u32 memory[];
    __shared__ Positions seen[ROWS];
    __shared__ Known known[ROWS];
    __shared__ Joined joins[ROWS];
    __shared__ f32 query_scales[ROWS], factors[ROWS];
    const Tile tile = tile_of(call, blockIdx.x);
    const i32 lane = threadIdx.x % 32, rows = tile.rows();
    Shared shared;
    shared.query_words = round_to_four(INT8 ? (call.head_dim + 3) / 4 : call.head_dim);
    shared.value_words = round_to_four(call.value_dim);
    // `Room::words` in shape.rs counts these.
    shared.rows = reinterpret_cast<i64*>(memory);
    shared.stage = memory + 2 * call.part;
    shared.scores = shared.stage + STAGED * STAGED_STRIDE;
    shared.queries = shared.scores + call.row_room * call.part;
    shared.values = reinterpret_cast<f32*>(shared.queries + call.row_room * shared.query_words);
    shared.seen = seen;
    shared.joins = joins;
    shared.query_scales = query_scales;
    shared.factors = factors;

    const bool begins = tile.whole && call.in_max != nullptr;
    for (i32 i = threadIdx.x; i < rows * shared.value_words; i += BLOCK) {
        const i32 row = i / shared.value_words, column = i % shared.value_words;
        const i64 at = (tile.first_token + tile.token(row)) * call.in_token + tile.head(row) * call.in_head;
        shared.values[i] = begins && column < call.value_dim ? call.in_values[at + column] : 0.0f;
    }
    for (i32 row = threadIdx.x; row < rows; row += BLOCK) {
        const i64 token = tile.first_token + tile.token(row), head = tile.head(row);
        seen[row] = visible(call.mask, call.span, tile.own + tile.token(row), tile.read);
        known[row] = {LOWEST, 0.0f};
        if (begins) known[row] = {call.in_max[token * call.in_max_token + head], call.in_sum[token * call.in_sum_token + head]};
    }
    load_queries(call, tile, shared);

    const bool has_scales = call.format == IS_INT8;
    const i64 size = has_scales ? 1 : call.format == IS_F32 ? 4 : 2;
    const bool wide = call.head_dim * size % 16 == 0 && call.value_stride * size % 16 == 0;
    const CacheRows key_rows = {call.keys, has_scales ? call.key_scales : nullptr, call.head_dim, call.head_dim, call.format, wide};
    const CacheRows value_rows = {call.values, has_scales ? call.value_scales : nullptr, call.value_stride, call.value_dim,
                                  call.format, wide};
    const Positions all = tile.positions;
    for (i32 start = all.first / call.part * call.part; start < all.end; start += call.part) {
        const Positions within = {max(all.first - start, 0), min(all.end - start, call.part)};
        __syncthreads();
        for (i32 j = within.first + threadIdx.x; j < within.end; j += BLOCK) shared.rows[j] = cache_row(call, tile, start + j);
        __syncthreads();
        score_part(call, tile, shared, key_rows, start, within);
        __syncthreads();
        for (i32 row = threadIdx.x / 32; row < rows; row += BLOCK / 32) {
            u32* scores = shared.scores + row * call.part;
            const Known part = weigh(scores, within, lane);
            f32 factor = 1.0f;
            if (INT8 && call.whole_values) factor = weigh_in_8_bits(scores, value_rows.scales, shared.rows, within, lane);
            if (lane == 0) {
                const Joined now = joined(known[row], part);
                known[row] = now.known;
                joins[row] = now;
                factors[row] = factor;
            }
        }
        if (INT8 && call.whole_values) {
            weigh_values<true>(call, tile, shared, value_rows, within);
        } else {
            weigh_values<false>(call, tile, shared, value_rows, within);
        }
    }
    __syncthreads();

    for (i32 row = threadIdx.x / 32; row < rows; row += BLOCK / 32) {
        const i64 token = tile.first_token + tile.token(row), head = tile.head(row);
        const f32* state = shared.values + row * shared.value_words;
        if (call.out == nullptr) {
            f32* record = call.scratch + scratch_at(call, tile, row);
            for (i32 c = lane; c < call.value_dim; c += 32) record[c] = state[c];
            if (lane == 0) {
                record[call.value_dim] = known[row].most;
                record[call.value_dim + 1] = known[row].sum;
            }
            continue;
        }
        const Ending last = ending(known[row], call.sinks == nullptr ? nullptr : call.sinks + head);
        const i64 at = token * call.out_token + head * call.out_head;
        for (i32 c = lane; c < call.value_dim; c += 32) put(call.out, at + c, last.of(state[c]), call.type);
        if (call.log_sum_exp != nullptr && lane == 0) call.log_sum_exp[token * call.log_token + head] = last.log;
    }
}
