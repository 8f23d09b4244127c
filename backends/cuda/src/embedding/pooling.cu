// One row a sequence, from rows of X to rows of OUT. The mean's sum is one chain in the order of tokens.
#include "prelude.cuh"

constexpr i32 THREADS = 256;
// The numbers are `pooling::code`'s.
constexpr i32 LAST = 1, MEAN = 2;

// Block b has part b % parts of sequence b / parts.
KERNEL void __launch_bounds__(THREADS)
    pool(const X* x, const i32* starts, OUT* out, i64 tokens, i64 hidden, i64 x_stride, i64 out_stride, i64 parts,
         i32 pooling) {
    const i64 sequence = blockIdx.x / parts;
    const i64 c = blockIdx.x % parts * THREADS + threadIdx.x;
    if (c >= hidden) return;
    const i64 last = starts[sequence + 1];
    const i64 end = last < tokens ? last : tokens;
    const i64 start = starts[sequence];
    f32 y = 0.0f;
    if (start < end) {
        x += c;
        y = widen(x[(pooling == LAST ? end - 1 : start) * x_stride]);
        if (pooling == MEAN && end - start > 1) {
#pragma unroll 8
            for (i64 token = start + 1; token < end; token++) y += widen(x[token * x_stride]);
            y /= static_cast<f32>(end - start);
        }
    }
    out[sequence * out_stride + c] = narrow<OUT>(y);
}
