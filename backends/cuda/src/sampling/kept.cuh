// Which candidates of a row may be drawn: the contract's first three steps, and the draw of the fourth.
#pragma once
#include "sampling/select.cuh"

// Blocks of a multiprocessor at least: with more the compiler would spill registers.
constexpr i32 BLOCKS = 2;

// How a row is sampled: `SamplingParams::words`.
struct Parameters {
    f32 before, scale;
    u32 top_k, top_p;
    f32 min_p;
    u32 uniform, acceptance, residual, draft;

    // Whether the row is drawn from, and not its first candidate taken.
    DEVICE bool drawn(u64 first) const { return scale != 0.0f && has_weights(first); }
};

// Candidates in their own order, each as its logit says.
struct Own {
    Weights weights;

    DEVICE u64 in_order(u64 place) const { return place; }
    DEVICE Sum candidate(u64 place) const { return {weights.whole(weights.of(place)), 1}; }
};

// Behind every candidate but NaN.
constexpr u64 ALL = 0xfffffffeffffffffull;

// A prefix of the order, of which only what weighs at least `least` is kept, and the sum of the weights of that.
struct Kept {
    u64 last;
    f32 least;
    u64 sum;

    DEVICE bool has(u64 place, f32 weight) const { return place <= last && weight >= least; }
};

// `tallied` is `tally` of the whole row.
DEVICE Kept keep(const Row& row, const Own& own, const Parameters& how, const Sum& tallied) {
    const Sum whole = total(tallied);
    Kept kept{ALL, how.min_p, whole.weight};
    if (how.top_k > 0 && how.top_k < whole.count) {
        const Found found = pass_goal(row, own, 0, tallied, true, how.top_k - 1);
        kept.last = found.place;
        kept.sum = found.sum;
    }
    if (how.top_p > 0) {
        // Reaching a sum is passing what is 1 less.
        const u64 enough = part(kept.sum, how.top_p);
        const Found found = pass_goal(row, own, 0, tallied, false, enough == 0 ? 0 : enough - 1);
        kept.last = found.place;
        kept.sum = found.sum;
    }
    if (kept.least > 0.0f) {
        u64 mine = 0;
        for (i64 i = threadIdx.x; i < row.vocabulary; i += BLOCK) {
            const u64 place = row.place(i);
            const f32 weight = own.weights.of(place);
            if (kept.has(place, weight)) mine += own.weights.whole(weight);
        }
        kept.sum = join_team<BLOCK>(mine, AddWhole{});
    }
    return kept;
}

DEVICE u32 draw(const Row& row, const Own& own, const Parameters& how, const Sum& tallied, const Kept& kept) {
    return id(pass_goal(row, own, 0, tallied, false, part(kept.sum, how.uniform)).place);
}
