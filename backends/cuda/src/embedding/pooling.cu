// One row a sequence, from rows of floats to rows of floats. The mean's sum is one chain in the order of tokens.
#include "floats.cuh"

constexpr i32 THREADS = 256;
// The numbers are `pooling::code`'s.
constexpr i32 LAST = 1, MEAN = 2;

// Column x of the tokens from start to end, of which there is one at least.
template <typename X> DEVICE f32 pooled(const X* x, i64 start, i64 end, i64 stride, i32 pooling) {
    f32 y = widen(x[(pooling == LAST ? end - 1 : start) * stride]);
    if (pooling == MEAN && end - start > 1) {
#pragma unroll 8
        for (i64 token = start + 1; token < end; token++) y += widen(x[token * stride]);
        y /= static_cast<f32>(end - start);
    }
    return y;
}

// Block b has part b % parts of sequence b / parts.
KERNEL void __launch_bounds__(THREADS)
    pool(const void* x, const i32* starts, void* out, i64 tokens, i64 hidden, i64 x_stride, i64 out_stride, i64 parts,
         i32 pooling, i32 x_type, i32 out_type) {
    const i64 sequence = blockIdx.x / parts;
    const i64 c = blockIdx.x % parts * THREADS + threadIdx.x;
    if (c >= hidden) return;
    const i64 last = starts[sequence + 1];
    const i64 end = last < tokens ? last : tokens;
    const i64 start = starts[sequence];
    f32 y = 0.0f;
    if (start < end) {
        switch (x_type) {
        case F32:
            y = pooled(static_cast<const f32*>(x) + c, start, end, x_stride, pooling);
            break;
        case F16:
            y = pooled(static_cast<const f16*>(x) + c, start, end, x_stride, pooling);
            break;
        default:
            y = pooled(static_cast<const bf16*>(x) + c, start, end, x_stride, pooling);
        }
    }
    write_float(out, sequence * out_stride + c, y, out_type);
}
