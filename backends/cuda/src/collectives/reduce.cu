// A thread an element, reduced in F32 or I32: of the ranks of this launch, in ascending order, after those of the launches
// before.
#include "floats.cuh"

constexpr i32 THREADS = 256;

DEVICE i32 widen(i32 x) { return x; }
DEVICE void put(i32* to, i32 x) { *to = x; }
template <typename T> DEVICE void put(T* to, f32 x) { *to = narrow<T>(x); }

// The first of the greatest, and NaN where there is one: only it is not itself.
template <typename Wide> DEVICE Wide join(Wide a, Wide b, i32 maximum) {
    if (!maximum) return a + b;
    return b != b || (b > a && a == a) ? b : a;
}

// Element i of every rank of X, in Wide.
template <typename X, typename Wide>
DEVICE void reduce_element(const void* const (&inputs)[8], void* sums, void* out, i64 i, i32 first, i32 maximum) {
    Wide value = widen(static_cast<const X*>(inputs[0])[i]);
    if (!first) value = join(static_cast<Wide*>(sums)[i], value, maximum);
#pragma unroll
    for (i32 rank = 1; rank < 8; rank++) {
        if (inputs[rank]) value = join<Wide>(value, widen(static_cast<const X*>(inputs[rank])[i]), maximum);
    }
    if (out) {
        put(static_cast<X*>(out) + i, value);
    } else {
        static_cast<Wide*>(sums)[i] = value;
    }
}

// Of a type by the number of floats.cuh; 3 is I32.
KERNEL void __launch_bounds__(THREADS)
    reduce(const void* x0, const void* x1, const void* x2, const void* x3, const void* x4, const void* x5, const void* x6,
           const void* x7, void* sums, void* out, i64 elements, i32 type, i32 first, i32 maximum) {
    const i64 i = blockIdx.x * static_cast<i64>(THREADS) + threadIdx.x;
    if (i >= elements) return;
    const void* const inputs[8] = {x0, x1, x2, x3, x4, x5, x6, x7};
    switch (type) {
    case F32:
        return reduce_element<f32, f32>(inputs, sums, out, i, first, maximum);
    case F16:
        return reduce_element<f16, f32>(inputs, sums, out, i, first, maximum);
    case BF16:
        return reduce_element<bf16, f32>(inputs, sums, out, i, first, maximum);
    default:
        return reduce_element<i32, i32>(inputs, sums, out, i, first, maximum);
    }
}
