// A thread an element of X, reduced in WIDE: of the ranks of this launch, in ascending order, after those of the launches
// before.
#include "prelude.cuh"

constexpr i32 THREADS = 256;

DEVICE i32 widen(i32 x) { return x; }
DEVICE void put(i32* to, i32 x) { *to = x; }
template <typename T> DEVICE void put(T* to, f32 x) { *to = narrow<T>(x); }

// The first of the greatest, and NaN where there is one: only it is not itself.
DEVICE WIDE join(WIDE a, WIDE b, i32 maximum) {
    if (!maximum) return a + b;
    return b != b || (b > a && a == a) ? b : a;
}

KERNEL void __launch_bounds__(THREADS)
    reduce(const X* x0, const X* x1, const X* x2, const X* x3, const X* x4, const X* x5, const X* x6, const X* x7, WIDE* sums,
           X* out, i64 elements, i32 first, i32 maximum) {
    const i64 i = blockIdx.x * static_cast<i64>(THREADS) + threadIdx.x;
    if (i >= elements) return;
    const X* const inputs[8] = {x0, x1, x2, x3, x4, x5, x6, x7};
    WIDE value = widen(x0[i]);
    if (!first) value = join(sums[i], value, maximum);
#pragma unroll
    for (i32 rank = 1; rank < 8; rank++) {
        if (inputs[rank]) value = join(value, widen(inputs[rank][i]), maximum);
    }
    if (out) {
        put(out + i, value);
    } else {
        sums[i] = value;
    }
}
