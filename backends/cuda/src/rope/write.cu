// Queries in place, and keys and values to their slots of the cache: a warp a row.
#include "cache/row.cuh"
#include "rope/turn.cuh"

struct Turned {
    const f32 *k, *v;
    i64 k_token, k_head, v_token, v_head;
    Turning turning;

    DEVICE f32 at(bool is_value, i64 token, i64 head, i64 d) const {
        if (is_value) return v[token * v_token + head * v_head + d];
        const f32* row = k + token * k_token + head * k_head;
        const i64 pairs = turning.pairs;
        if (d >= 2 * pairs) return row[d];
        const i64 pair = turning.interleaved ? d / 2 : d % pairs;
        f32 a = row[turning.first(pair)], b = row[turning.second(pair)];
        turning.turn(a, b, token, pair);
        return d == turning.first(pair) ? a : b;
    }
};

KERNEL void __launch_bounds__(BLOCK)
    rope_cache_write(CACHE_PARAMETERS, const f32* k, const f32* v, i64 k_token, i64 k_head, i64 v_token, i64 v_head, f32* q,
                     i64 q_token, i64 q_head, i64 heads, const f32* cos_sin, i64 pairs, i32 interleaved) {
    const CacheRows cache = CACHE_ARGUMENTS;
    const Turning turning = {cos_sin, pairs, interleaved, 1.0f};
    const i64 row = blockIdx.x * static_cast<i64>(BLOCK / 32) + threadIdx.x / 32;
    const i64 rows = heads + 2 * kv_heads;
    if (row >= tokens * rows) return;
    const i64 token = row / rows, within = row % rows;
    const i32 lane = threadIdx.x % 32;
    if (within < heads) {
        f32* x = q + token * q_token + within * q_head;
        for (i64 pair = lane; pair < pairs; pair += 32) {
            f32& a = x[turning.first(pair)];
            f32& b = x[turning.second(pair)];
            turning.turn(a, b, token, pair);
        }
        return;
    }
    const Turned turned = {k, v, k_token, k_head, v_token, v_head, turning};
    cache.write(turned, within - heads >= kv_heads, token, (within - heads) % kv_heads, lane);
}
