// The choice of experts, a warp a row and a block a warp. Experts rank by keys: whole numbers in the order of the contract,
// so ties and NaN need no care of their own. Lane l has the experts l, l + 32, ...
#include "team.cuh"

constexpr i32 LANES = 32;
constexpr i32 MAX_EXPERTS = 1024;
// Of an expert that takes no part, or no longer.
constexpr u32 GONE = 0;
constexpr u32 NAN_KEY = 1, LEAST_KEY = 0x007fffffu, INFINITE_KEY = 0xff800000u;
// What keeps a sum of zeros from being divided by.
constexpr f32 LEAST_SUM = 1e-20f;
// The numbers are `routing::codes`'.
constexpr i32 SOFTMAX = 0, SOFTMAX_OF_CHOSEN = 1;
constexpr i32 BEST = 0;

__shared__ f32 scores[MAX_EXPERTS];
// Of experts; in the end the weights' bits, by slot.
__shared__ u32 keys[MAX_EXPERTS];
// Keys of groups; then the chosen, by slot.
__shared__ u32 list[MAX_EXPERTS];

DEVICE f32 not_a_number() { return __uint_as_float(0x7fc00000u); }
DEVICE bool is_nan(f32 x) { return x != x; }

// The greater number has the greater key; 0 and -0 have one.
DEVICE u32 key_of(f32 x) {
    const u32 bits = __float_as_uint(x);
    if (is_nan(x)) return NAN_KEY;
    if (bits == 0x80000000u) return bits;
    return bits >> 31 ? ~bits : bits ^ 0x80000000u;
}

DEVICE f32 value_of(u32 key) {
    if (key == NAN_KEY) return not_a_number();
    return __uint_as_float(key >> 31 ? key ^ 0x80000000u : ~key);
}

// What a softmax's greatest number is found by: NaN is above all of them.
DEVICE u32 softmax_key(f32 x) { return is_nan(x) ? 0xffffffffu : key_of(x); }

// Whether a softmax is NaN in every place: one number is, or is infinite, or all are minus infinity.
DEVICE bool is_lost(u32 greatest) { return greatest >= INFINITE_KEY || greatest == LEAST_KEY; }

// The greater key, and of equal ones the lower id: the key above, the id's complement below.
struct Better {
    DEVICE u64 operator()(u64 a, u64 b) const { return a > b ? a : b; }
};

DEVICE u64 entry(u32 key, i32 expert) { return static_cast<u64>(key) << 32 | static_cast<u32>(~expert); }

DEVICE u32 group_key(i32 first, i32 size, i32 group_score, bool biased) {
    i32 one = first, two = first;
    for (i32 expert = first + 1; expert < first + size; expert++) {
        if (keys[expert] > keys[one]) {
            two = one;
            one = expert;
        } else if (two == one || keys[expert] > keys[two]) {
            two = expert;
        }
    }
    if (group_score == BEST) return keys[one];
    const f32 best = biased ? value_of(keys[one]) : scores[one];
    if (two == one) return key_of(best);
    return key_of(best + (biased ? value_of(keys[two]) : scores[two]));
}

// The best of a lane's experts.
DEVICE u64 best_of_lane(i32 experts) {
    u64 found = 0;
    for (i32 expert = threadIdx.x; expert < experts; expert += LANES) found = Better{}(found, entry(keys[expert], expert));
    return found;
}

KERNEL void __launch_bounds__(LANES)
    route(const f32* logits, const f32* bias, i32* ids, f32* weights, i64 logits_stride, i64 ids_stride, i64 weights_stride,
          i32 experts, i32 top_k, i32 scoring, i32 groups, i32 kept, i32 group_size, i32 group_score, i32 renormalized,
          f32 scale) {
    const i64 row = blockIdx.x;
    const i32 lane = threadIdx.x;
    logits += row * logits_stride;
    if (scoring == SOFTMAX) {
        u32 greatest = 0;
        for (i32 expert = lane; expert < experts; expert += LANES) greatest = Most{}(greatest, softmax_key(logits[expert]));
        greatest = join_warp(greatest, Most{});
        const f32 most = value_of(greatest);
        f32 sum = 0.0f;
        for (i32 expert = lane; expert < experts; expert += LANES) {
            const f32 power = expf(logits[expert] - most);
            scores[expert] = power;
            sum += power;
        }
        sum = join_warp(sum, Add{});
        for (i32 expert = lane; expert < experts; expert += LANES) {
            scores[expert] = is_lost(greatest) ? not_a_number() : scores[expert] / sum;
        }
    } else {
        for (i32 expert = lane; expert < experts; expert += LANES) {
            const f32 x = logits[expert];
            scores[expert] = scoring == SOFTMAX_OF_CHOSEN ? x : 1.0f / (1.0f + expf(-x));
        }
    }
    for (i32 expert = lane; expert < experts; expert += LANES) {
        keys[expert] = key_of(bias ? __fadd_rn(scores[expert], bias[expert]) : logits[expert]);
    }
    __syncthreads();
    if (groups > 0) {
        for (i32 group = lane; group < groups; group += LANES) {
            list[group] = group_key(group * group_size, group_size, group_score, bias != nullptr);
        }
        __syncthreads();
        // Takes out the experts of all groups but the best.
        for (i32 group = lane; group < groups; group += LANES) {
            const u32 key = list[group];
            i32 better = 0;
            for (i32 other = 0; other < groups; other++) {
                better += list[other] > key || (list[other] == key && other < group);
            }
            if (better >= kept) {
                for (i32 member = 0; member < group_size; member++) keys[group * group_size + member] = GONE;
            }
        }
        __syncthreads();
    }
    u64 mine = best_of_lane(experts);
    for (i32 slot = 0; slot < top_k; slot++) {
        const i32 chosen = ~static_cast<i32>(static_cast<u32>(join_warp(mine, Better{})));
        if (chosen % LANES == lane) {
            list[slot] = chosen;
            keys[chosen] = GONE;
            mine = best_of_lane(experts);
        }
    }
    __syncthreads();
    // Every lane goes through all slots where the order of a sum is by slots.
    u32 greatest = 0;
    f32 sum = 0.0f;
    if (scoring == SOFTMAX_OF_CHOSEN) {
        for (i32 slot = 0; slot < top_k; slot++) greatest = Most{}(greatest, softmax_key(scores[list[slot]]));
        for (i32 slot = 0; slot < top_k; slot++) sum += expf(scores[list[slot]] - value_of(greatest));
    }
    for (i32 slot = lane; slot < top_k; slot += LANES) {
        f32 weight = scores[list[slot]];
        if (scoring == SOFTMAX_OF_CHOSEN) {
            weight = is_lost(greatest) ? not_a_number() : expf(weight - value_of(greatest)) / sum;
        }
        keys[slot] = __float_as_uint(weight);
    }
    __syncthreads();
    f32 divisor = 0.0f;
    for (i32 slot = 0; slot < top_k; slot++) divisor += __uint_as_float(keys[slot]);
    divisor += LEAST_SUM;
    for (i32 slot = lane; slot < top_k; slot += LANES) {
        f32 weight = __uint_as_float(keys[slot]);
        if (renormalized) weight /= divisor;
        ids[row * ids_stride + slot] = static_cast<i32>(list[slot]);
        weights[row * weights_stride + slot] = weight * scale;
    }
}
