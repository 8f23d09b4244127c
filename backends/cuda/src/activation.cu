// out[r, c] = function(x)[r, c], over rows of X, to OUT. A block computes PART vectors of each thread's in one row.
#include "activation_row.cuh"

constexpr i32 THREADS = 256;
// Threads' elements of 16 bytes, or single ones where rows are not aligned.
constexpr i32 LANES = LANES_OF_16_BYTES<X>;
static_assert(sizeof(OUT) >= sizeof(X), "a vector of results is no smaller");

template <i32 N, bool GATED>
DEVICE void part(const X* x, OUT* out, i64 columns, i64 c, const Activated& a) {
    f32 y[N];
    if constexpr (GATED) {
        gated<N>(y, x, columns, c, a);
    } else {
        plain<N>(y, x, c, a);
    }
    store<N>(out + c, y);
}

// Block b has part b % parts of row b / parts.
template <bool GATED>
DEVICE void rows(const X* x, OUT* out, i64 x_stride, i64 out_stride, i64 columns, i64 parts, i32 in_vectors,
                 const Activated& a) {
    const i64 row = blockIdx.x / parts;
    const i64 index = blockIdx.x % parts * THREADS + threadIdx.x;
    x += row * x_stride;
    out += row * out_stride;
    if (in_vectors) {
        const i64 c = index * LANES;
        if (c < columns) part<LANES, GATED>(x, out, columns, c, a);
    } else if (index < columns) {
        part<1, GATED>(x, out, columns, index, a);
    }
}

KERNEL void __launch_bounds__(THREADS)
    activation_plain(const X* x, OUT* out, i64 x_stride, i64 out_stride, i64 columns, i64 parts, i32 in_vectors, i32 function,
                     i32 interleaved, f32 alpha, f32 limit) {
    rows<false>(x, out, x_stride, out_stride, columns, parts, in_vectors, {function, interleaved, alpha, limit});
}

KERNEL void __launch_bounds__(THREADS)
    activation_gated(const X* x, OUT* out, i64 x_stride, i64 out_stride, i64 columns, i64 parts, i32 in_vectors, i32 function,
                     i32 interleaved, f32 alpha, f32 limit) {
    rows<true>(x, out, x_stride, out_stride, columns, parts, in_vectors, {function, interleaved, alpha, limit});
}
