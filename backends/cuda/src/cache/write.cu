// Keys and values to their slots, a warp a row. In a latent cache a key is a row of K and then one of V.
#include "cache/row.cuh"

struct Given {
    const f32 *k, *v;
    i64 k_token, k_head, v_token, v_head;
    i64 split; // elements of a key that come from K

    DEVICE f32 at(bool is_value, i64 token, i64 head, i64 d) const {
        if (!is_value && d < split) return k[token * k_token + head * k_head + d];
        return v[token * v_token + head * v_head + (is_value ? d : d - split)];
    }
};

KERNEL void __launch_bounds__(BLOCK, 2) cache_write(CACHE_PARAMETERS, const f32* k, const f32* v, i64 k_token, i64 k_head,
                                                 i64 v_token, i64 v_head, i64 split, i64 kinds) {
    const CacheRows cache = CACHE_ARGUMENTS;
    const Given given = {k, v, k_token, k_head, v_token, v_head, split};
    const i64 row = blockIdx.x * static_cast<i64>(BLOCK / 32) + threadIdx.x / 32;
    const i64 rows = kinds * kv_heads;
    if (row >= tokens * rows) return;
    const i64 within = row % rows;
    cache.write(given, within >= kv_heads, row / rows, within % kv_heads, threadIdx.x % 32);
}
