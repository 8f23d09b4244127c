// A row of keys or values, one token's of one head, to its slot in the format of the cache: a warp a row.
//
// A source of rows has `at(is_value, token, head, d)`, which gives the same each time.
#pragma once
#include "quantize/steps.cuh"
#include "team.cuh"

// The numbers of `cache::format_code`.
constexpr i32 FORMAT_F32 = 0, FORMAT_F16 = 1, FORMAT_BF16 = 2, FORMAT_INT8 = 3;

// `Place::describe` in write.rs passes these parameters, in this order.
#define CACHE_PARAMETERS                                                                                                     \
    const i32 *slots, u8 *keys, u8 *values, f32 *key_scales, f32 *value_scales, i64 tokens, i64 kv_heads, i64 cache_slots,   \
        i64 key_dim, i64 value_dim, i32 format
#define CACHE_ARGUMENTS                                                                                                      \
    { slots, keys, values, key_scales, value_scales, tokens, kv_heads, cache_slots, key_dim, value_dim, format }

struct CacheRows {
    const i32* slots;          // [tokens]; negative ones are skipped
    u8 *keys, *values;         // [slots, kv_heads, dim]
    f32 *key_scales, *value_scales; // [slots, kv_heads] of INT8
    i64 tokens, kv_heads, cache_slots, key_dim, value_dim;
    i32 format;

    // All lanes of a warp call it.
    template <typename Source> DEVICE void write(const Source& source, bool is_value, i64 token, i64 head, i32 lane) const {
        const i64 slot = slots[token];
        if (slot < 0 || slot >= cache_slots) return;
        const i64 dim = is_value ? value_dim : key_dim;
        const i64 row = slot * kv_heads + head;
        u8* to = is_value ? values : keys;
        if (format == FORMAT_F32) {
            f32* out = reinterpret_cast<f32*>(to) + row * dim;
            for (i64 d = lane; d < dim; d += 32) out[d] = source.at(is_value, token, head, d);
        } else if (format == FORMAT_F16) {
            f16* out = reinterpret_cast<f16*>(to) + row * dim;
            for (i64 d = lane; d < dim; d += 32) out[d] = narrow<f16>(source.at(is_value, token, head, d));
        } else if (format == FORMAT_BF16) {
            bf16* out = reinterpret_cast<bf16*>(to) + row * dim;
            for (i64 d = lane; d < dim; d += 32) out[d] = narrow<bf16>(source.at(is_value, token, head, d));
        } else {
            const Format symmetric = format_of(0, 0);
            Range range = {0, 0};
            for (i64 d = lane; d < dim; d += 32) include(range, source.at(is_value, token, head, d));
            const Steps steps = steps_of({join_warp(range.below, Most{}), join_warp(range.above, Most{})}, symmetric);
            if (lane == 0) (is_value ? value_scales : key_scales)[row] = steps.scale;
            for (i64 d = lane; d < dim; d += 32) to[row * dim + d] = byte_of(source.at(is_value, token, head, d), steps, symmetric);
        }
    }
};
