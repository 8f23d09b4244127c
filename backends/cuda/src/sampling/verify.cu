// Drafted tokens against the model's own distribution.
#include "sampling/kept.cuh"

// A standing draft.
constexpr u32 STANDS = 0xffffffffu;

// What is left of a row's distribution where the draft's is taken away, in the order of ids.
struct Rest {
    Own own;
    Kept kept;
    f32 sum;
    const f32* q;

    // NaN and what is below 0 count as 0.
    DEVICE f32 draft(u32 id) const {
        const f32 y = q[id];
        return y > 0.0f ? fminf(y, 0x1p127f) : 0.0f;
    }

    DEVICE f32 probability(u64 place) const {
        const f32 weight = own.weights.of(place);
        return rank(place) != UNORDERED && kept.has(place, weight) ? weight / sum : 0.0f;
    }

    DEVICE u64 in_order(u64 place) const { return id(place); }

    DEVICE Sum candidate(u64 place) const {
        const f32 rest = fmaxf(probability(place) - draft(id(place)), 0.0f);
        const u64 weight = own.weights.whole(fminf(rest, 1.0f));
        return {weight, weight != 0};
    }
};

DEVICE bool accepts(const Parameters& how, f32 q, f32 p) { return static_cast<f32>(how.acceptance >> 8) * 0x1p-24f * q < p; }

// A block a row of logits: whether the row's draft, drawn from q, stands; and the token that is taken if it does not.
KERNEL void __launch_bounds__(BLOCK, BLOCKS)
    verify(const f32* logits, const Parameters* table, const i32* drafts, const f32* q, u32* tokens, i64 stride, i64 q_stride,
           i64 vocabulary, i32 bits, f32 unit) {
    const Row row{logits + blockIdx.x * stride, vocabulary};
    const Parameters how = table[blockIdx.x];
    const u64 first = first_of(row);
    const bool is_draft = how.draft != UNORDERED;
    // An id below 0 is beyond every vocabulary.
    const u32 drafted = is_draft ? static_cast<u32>(drafts[how.draft]) : UNORDERED;
    const f32* own_q = is_draft ? q + how.draft * q_stride : q;
    const bool known = drafted < vocabulary;
    u32 token = id(first);
    bool stands = false;
    if (how.drawn(first)) {
        const Own own{{first, how.before, how.scale, bits}};
        const Sum tallied = tally(row, own, 0, 0);
        const Kept kept = keep(row, own, how, tallied);
        const Rest rest{own, kept, as_float(kept.sum) * unit, own_q};
        if (known) stands = accepts(how, rest.draft(drafted), rest.probability(row.place(drafted)));
        if (!stands) {
            bool drawn = true;
            if (is_draft) {
                const Sum sums = tally(row, rest, 0, ID_DIGIT);
                const u64 left = total(sums).weight;
                if (left > 0) {
                    token = id(pass_goal(row, rest, ID_DIGIT, sums, false, part(left, how.residual)).place);
                    drawn = false;
                }
            }
            if (drawn) token = draw(row, own, how, tallied, kept);
        }
    } else if (known && drafted == token) {
        const f32 y = own_q[drafted];
        stands = accepts(how, y > 0.0f ? fminf(y, 0x1p127f) : 0.0f, 1.0f);
    }
    if (threadIdx.x == 0) tokens[blockIdx.x] = stands ? STANDS : token;
}

// A thread a request: how many of its drafts stand, and the token of the first row whose draft does not.
KERNEL void __launch_bounds__(BLOCK, BLOCKS)
    accept(const u32* cu_drafts, const u32* drafts, const u32* tokens, i32* accepted, i32* next, i64 requests, i32 drawn) {
    const i64 request = static_cast<i64>(blockIdx.x) * BLOCK + threadIdx.x;
    if (request >= requests) return;
    const i64 start = cu_drafts[request], end = cu_drafts[request + 1];
    i64 draft = start;
    while (draft < end) {
        const u32 token = tokens[draft + request];
        // Chosen drafts stand where they are what the row draws.
        if (token != (drawn ? STANDS : drafts[draft])) break;
        draft++;
    }
    accepted[request] = static_cast<i32>(draft - start);
    next[request] = static_cast<i32>(tokens[draft + request]);
}
