// Log-probabilities: a block a row makes the target's, the highest, and all.
#include "sampling/row.cuh"

// Where a row has weights: its greatest logit, and the logarithm of the sum of the weights.
struct Scale {
    bool weighs;
    f32 greatest, log_sum;

    DEVICE f32 log_prob(f32 x) const {
        if (!weighs) return __uint_as_float(0x7fc00000u);
        const bool finite = (__float_as_uint(x) & 0x7f800000u) != 0x7f800000u;
        return finite ? x - greatest - log_sum : x;
    }
};

KERNEL void __launch_bounds__(BLOCK)
    log_probs(const f32* logits, const i32* targets, f32* out, f32* top, f32* all, i64 stride, i64 vocabulary, i64 highest,
              i64 top_stride, i64 all_stride, i32 bits, f32 unit) {
    const i64 r = blockIdx.x;
    const Row row{logits + r * stride, vocabulary};
    const u64 first = first_of(row);
    Scale own{has_weights(first), 0.0f, 0.0f};
    if (own.weighs) {
        const Weights weights(first, 1.0f, 1.0f, bits);
        u64 mine = 0;
#pragma unroll 4
        for (i64 i = threadIdx.x; i < vocabulary; i += BLOCK) mine += weights.whole(weights.of(row.place(i)));
        own.greatest = weights.greatest;
        own.log_sum = logf(as_float(join_team<BLOCK>(mine, AddWhole{})) * unit);
    }
    if (threadIdx.x == 0) {
        const i64 target = targets[r];
        const bool known = target >= 0 && target < vocabulary;
        out[r] = known ? own.log_prob(row.logits[target]) : __uint_as_float(0x7fc00000u);
    }
    if (all) {
        for (i64 i = threadIdx.x; i < vocabulary; i += BLOCK) all[r * all_stride + i] = own.log_prob(row.logits[i]);
    }
    // The highest logits, which are told as log-probabilities.
    for (i64 i = threadIdx.x; i < highest; i += BLOCK) top[r * top_stride + i] = own.log_prob(top[r * top_stride + i]);
}
