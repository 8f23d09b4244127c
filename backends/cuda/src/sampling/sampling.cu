// The next token of each row of logits, and the distribution that its draw follows: a block a row.
#include "sampling/kept.cuh"

DEVICE Row row_of(const f32* logits, i64 stride, i64 vocabulary) { return {logits + blockIdx.x * stride, vocabulary}; }

KERNEL void __launch_bounds__(BLOCK, BLOCKS)
    sample(const f32* logits, const Parameters* table, i32* ids, i64 stride, i64 vocabulary, i32 bits) {
    const Row row = row_of(logits, stride, vocabulary);
    const Parameters how = table[blockIdx.x];
    const u64 first = first_of(row);
    u32 token = id(first);
    if (how.drawn(first)) {
        const Own own{{first, how.before, how.scale, bits}};
        const Sum tallied = tally(row, own, 0, 0);
        token = draw(row, own, how, tallied, keep(row, own, how, tallied));
    }
    if (threadIdx.x == 0) ids[blockIdx.x] = static_cast<i32>(token);
}

KERNEL void __launch_bounds__(BLOCK, BLOCKS)
    probabilities(const f32* logits, const Parameters* table, f32* out, i64 stride, i64 out_stride, i64 vocabulary, i32 bits,
                  f32 unit) {
    const Row row = row_of(logits, stride, vocabulary);
    const Parameters how = table[blockIdx.x];
    const u64 first = first_of(row);
    out += blockIdx.x * out_stride;
    if (how.drawn(first)) {
        const Own own{{first, how.before, how.scale, bits}};
        const Kept kept = keep(row, own, how, tally(row, own, 0, 0));
        const f32 sum = as_float(kept.sum) * unit;
        for (i64 i = threadIdx.x; i < vocabulary; i += BLOCK) {
            const u64 place = row.place(i);
            const f32 weight = own.weights.of(place);
            out[i] = kept.has(place, weight) ? weight / sum : 0.0f;
        }
    } else {
        for (i64 i = threadIdx.x; i < vocabulary; i += BLOCK) out[i] = i == id(first) ? 1.0f : 0.0f;
    }
}
