// Normed rows as floats, a team a row.
#include "norm/row.cuh"

// Told of no blocks of a multiprocessor, the compiler spills registers to make room for more than four.
KERNEL void __launch_bounds__(BLOCK, 4)
    norm_rows(NORM_PARAMETERS, OUT* out, i64 out_outer, i64 out_inner, i64 rows, i64 inner, i32 lanes) {
    const Team team = Team::of(lanes);
    const i64 number = team.number();
    if (number >= rows) return;
    const i64 o = number / inner, i = number % inner;
    NormedRow row = NORM_ARGUMENTS;
    row.open(o, i, team);
    out += o * out_outer + i * out_inner;
    const bool together = has_fours(out);
    for (i64 c = 4 * team.lane; c < row.columns; c += 4 * team.lanes) {
        f32 y[4];
        row.four(y, c, row.columns);
        store_four(out, y, c, row.columns, together);
    }
}
