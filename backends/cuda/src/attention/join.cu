// What becomes of states: those of a row's parts joined from left to right to what a call is to give, and results of calls over
// any positions merged. A block of 128 threads a row.
#include "attention/element.cuh"
#include "attention/state.cuh"

constexpr i32 THREADS = 128;

// Makes of the parts of one row, or of the one state of a row that was read whole, the result or the state.
KERNEL void __launch_bounds__(THREADS)
    join(const f32* scratch, const i32* tiles, void* out, f32* out_max, f32* out_sum, f32* log_sum_exp, const f32* sinks,
         const f32* in_max, const f32* in_sum, const f32* in_values, i64 out_token, i64 out_head, i64 out_max_token,
         i64 out_sum_token, i64 log_token, i64 in_max_token, i64 in_sum_token, i64 in_token, i64 in_head, i32 type, i32 value_dim,
         i32 heads, i32 tile_tokens) {
    const i64 index = blockIdx.x, head = index % heads, in_tile = index / heads % tile_tokens;
    const i32* tile = tiles + 12 * (index / heads / tile_tokens);
    const i64 tokens = tile[1], parts = tile[9], record_words = value_dim + 2;
    if (in_tile >= tokens) return;
    const i64 token = tile[0] + in_tile;
    const f32* records = scratch + ((tile[8] + in_tile) * heads + head) * record_words;
    // What was read whole began with the state that came in.
    const bool begins = in_max != nullptr && tile[10] == 0;
    for (i32 c = threadIdx.x; c < value_dim; c += THREADS) {
        Known known = {LOWEST, 0.0f};
        f32 value = 0.0f;
        if (begins) {
            known = {in_max[token * in_max_token + head], in_sum[token * in_sum_token + head]};
            value = in_values[token * in_token + head * in_head + c];
        }
        for (i64 part = 0; part < parts; part++) {
            const f32* record = records + part * tokens * heads * record_words;
            const Joined now = joined(known, {record[value_dim], record[value_dim + 1]});
            value = joined_value(now, value, record[c]);
            known = now.known;
        }
        const i64 at = token * out_token + head * out_head + c;
        if (out_max != nullptr) {
            if (c == 0) {
                out_max[token * out_max_token + head] = is_empty(known.sum) ? minus_infinity() : known.most;
                out_sum[token * out_sum_token + head] = known.sum;
            }
            static_cast<f32*>(out)[at] = value;
            continue;
        }
        const Ending last = ending(known, sinks == nullptr ? nullptr : sinks + head);
        put(out, at, last.of(value), type);
        if (log_sum_exp != nullptr && c == 0) log_sum_exp[token * log_token + head] = last.log;
    }
}

// A partial result, `PARTS` of which a launch merges; those that are not there are null.
#define PART(n) const void *out##n, const f32 *log##n, i64 token##n, i64 head##n, i64 log_token##n

// One row of partial results, after the state of those before them, `[tokens, heads, value_dim + 2]`, where there are some: to
// the result, or to that state.
KERNEL void __launch_bounds__(THREADS)
    merge(PART(0), PART(1), PART(2), PART(3), PART(4), PART(5), PART(6), PART(7), const f32* before, f32* after, void* out,
          f32* log_sum_exp, i64 out_token, i64 out_head, i64 out_log_token, i32 parts, i32 type, i32 value_dim, i32 heads) {
    const void* outs[] = {out0, out1, out2, out3, out4, out5, out6, out7};
    const f32* logs[] = {log0, log1, log2, log3, log4, log5, log6, log7};
    const i64 tokens[] = {token0, token1, token2, token3, token4, token5, token6, token7};
    const i64 head_strides[] = {head0, head1, head2, head3, head4, head5, head6, head7};
    const i64 log_tokens[] = {log_token0, log_token1, log_token2, log_token3, log_token4, log_token5, log_token6, log_token7};
    const i64 index = blockIdx.x, token = index / heads, head = index % heads, record = index * (value_dim + 2);
    for (i32 c = threadIdx.x; c < value_dim; c += THREADS) {
        Known known = {LOWEST, 0.0f};
        f32 value = 0.0f;
        if (before != nullptr) {
            known = {before[record + value_dim], before[record + value_dim + 1]};
            value = before[record + c];
        }
#pragma unroll
        for (i32 i = 0; i < 8; i++) {
            if (i >= parts) break;
            // A part is a state whose sum is 1; one whose logarithm is minus infinity is empty.
            const f32 log = logs[i][token * log_tokens[i] + head];
            const Joined now = joined(known, {log, log == minus_infinity() ? 0.0f : 1.0f});
            value = joined_value(now, value, element(outs[i], token * tokens[i] + head * head_strides[i] + c, type));
            known = now.known;
        }
        if (after != nullptr) {
            after[record + c] = value;
            if (c == 0) {
                after[record + value_dim] = known.most;
                after[record + value_dim + 1] = known.sum;
            }
            continue;
        }
        const Ending last = ending(known, nullptr);
        put(out, token * out_token + head * out_head + c, last.of(value), type);
        if (log_sum_exp != nullptr && c == 0) log_sum_exp[token * out_log_token + head] = last.log;
    }
}
