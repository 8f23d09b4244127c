// Rows that an activation makes, to integers.
#include "activation_row.cuh"
#include "quantize/rows.cuh"

template <bool GATED> struct ActivatedRow {
    const X* x;
    i64 outer, columns;
    Activated activated;

    DEVICE void open(i64 o, i64, const Team&) { x += o * outer; }

    DEVICE void four(f32 (&y)[4], i64 c, i64 end) const {
#pragma unroll
        for (i32 i = 0; i < 4; i++) {
            f32 one[1] = {0.0f};
            if (c + i < end) {
                if constexpr (GATED) {
                    gated<1>(one, x, columns, c + i, activated);
                } else {
                    plain<1>(one, x, c + i, activated);
                }
            }
            y[i] = one[0];
        }
    }
};

KERNEL void __launch_bounds__(BLOCK, BLOCKS)
    activation_quantize_plain(const X* x, i64 x_stride, i32 function, i32 interleaved, f32 alpha, f32 limit,
                              QUANTIZE_PARAMETERS(f32)) {
    const Integers<f32> integers = QUANTIZE_ARGUMENTS;
    integers.run(ActivatedRow<false>{x, x_stride, columns, {function, interleaved, alpha, limit}}, lanes);
}

KERNEL void __launch_bounds__(BLOCK, BLOCKS)
    activation_quantize_gated(const X* x, i64 x_stride, i32 function, i32 interleaved, f32 alpha, f32 limit,
                              QUANTIZE_PARAMETERS(f32)) {
    const Integers<f32> integers = QUANTIZE_ARGUMENTS;
    integers.run(ActivatedRow<true>{x, x_stride, columns, {function, interleaved, alpha, limit}}, lanes);
}
