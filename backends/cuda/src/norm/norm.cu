// Normed rows as floats, a team a row.
#include "norm/row.cuh"

template <i32 LANES>
DEVICE void rows_to_floats(NormedRow row, OUT* out, i64 out_outer, i64 out_inner, i64 rows, i64 inner) {
    const i64 number = LANES == BLOCK ? blockIdx.x : blockIdx.x * static_cast<i64>(BLOCK / 32) + threadIdx.x / 32;
    if (number >= rows) return;
    const i32 lane = threadIdx.x % LANES;
    const i64 o = number / inner, i = number % inner;
    row.open<LANES>(o, i, lane);
    out += o * out_outer + i * out_inner;
    const bool together = has_fours(out);
    for (i64 c = 4 * lane; c < row.columns; c += 4 * LANES) {
        f32 y[4];
        row.four(y, c, row.columns);
        store_four(out, y, c, row.columns, together);
    }
}

KERNEL void __launch_bounds__(BLOCK)
    norm_rows(NORM_PARAMETERS, OUT* out, i64 out_outer, i64 out_inner, i64 rows, i64 inner, i32 lanes) {
    const NormedRow row = NORM_ARGUMENTS;
    if (lanes == BLOCK) {
        rows_to_floats<BLOCK>(row, out, out_outer, out_inner, rows, inner);
    } else {
        rows_to_floats<32>(row, out, out_outer, out_inner, rows, inner);
    }
}
