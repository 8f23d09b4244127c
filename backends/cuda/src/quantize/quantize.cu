// Rows in memory to integers, and the range of all of them.
#include "quantize/rows.cuh"

struct MemoryRow {
    const X* x;
    i64 outer, inner;
    bool fours = false;

    DEVICE void open(i64 o, i64 i, const Team&) {
        x += o * outer + i * inner;
        fours = has_fours(x);
    }

    DEVICE void four(f32 (&y)[4], i64 c, i64 end) const { load_four(y, x, c, end, fours && c % 4 == 0); }
};

KERNEL void __launch_bounds__(BLOCK, BLOCKS) quantize(const X* x, i64 x_outer, i64 x_inner, QUANTIZE_PARAMETERS(X)) {
    const Integers<X> integers = QUANTIZE_ARGUMENTS;
    const MemoryRow row = {x, x_outer, x_inner};
    integers.run(row, lanes);
}

// Each block's range of some rows, in two words.
KERNEL void __launch_bounds__(BLOCK, BLOCKS)
    quantize_range(const X* x, i64 x_outer, i64 x_inner, const f32* factors, const i32* outliers, u32* ranges, i64 rows,
                   i64 inner, i64 columns, i32 aside) {
    const Prepare prepare = {factors, outliers, aside};
    const Team team = Team::of(BLOCK);
    Range all = {0, 0};
    for (i64 number = blockIdx.x; number < rows; number += gridDim.x) {
        MemoryRow row = {x, x_outer, x_inner};
        row.open(number / inner, number % inner, team);
        const Range range = range_of(row, prepare, 0, columns, team);
        all = {Most{}(all.below, range.below), Most{}(all.above, range.above)};
    }
    if (threadIdx.x == 0) {
        ranges[2 * blockIdx.x] = all.below;
        ranges[2 * blockIdx.x + 1] = all.above;
    }
}
