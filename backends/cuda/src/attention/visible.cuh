// Which positions a query row sees.
#pragma once
#include "prelude.cuh"

// The numbers of `halite_kernels::attention::visible::code`.
constexpr i32 CAUSAL = 0, BIDIRECTIONAL = 1, SLIDING = 2, CHUNKED = 3, TREE = 4;

struct Positions {
    i32 first, end;
};

// From the first position that a row at position `own` sees to the last, of those that are read. With a tree there are gaps.
DEVICE Positions visible(i32 mask, i32 span, i32 own, const Positions& read) {
    const i32 end = max(own, -1) + 1;
    Positions seen = {0, end};
    if (mask == BIDIRECTIONAL) seen.end = read.end;
    if (mask == SLIDING) seen.first = max(end - span, 0);
    if (mask == CHUNKED) seen.first = max(end - 1, 0) / span * span;
    return {min(max(seen.first, read.first), read.end), min(max(seen.end, read.first), read.end)};
}

// Whether a row of a tree is `position` or comes after it; both count from the sequence's first row of the step. `chains` has
// for each row the first row of the chain that ends with it, and that row's parent.
DEVICE bool comes_after(const i32* chains, i32 row, i32 position) {
    while (row >= position) {
        if (position >= chains[2 * row]) return true;
        row = chains[2 * row + 1];
    }
    return false;
}
