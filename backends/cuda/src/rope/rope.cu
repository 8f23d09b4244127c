// Heads of X in place.
#include "rope/turn.cuh"

constexpr i32 THREADS = 256;

// A team of `lanes` threads turns a head.
KERNEL void __launch_bounds__(THREADS)
    rope(X* x, const f32* cos_sin, i64 rows, i64 heads, i64 pairs, i64 x_token, i64 x_head, i32 lanes, i32 interleaved,
         f32 direction) {
    const i64 row = blockIdx.x * static_cast<i64>(THREADS / lanes) + threadIdx.x / lanes;
    if (row >= rows) return;
    const Turning turning = {cos_sin, pairs, interleaved, direction};
    const i64 token = row / heads;
    x += token * x_token + row % heads * x_head;
    for (i64 pair = threadIdx.x % lanes; pair < pairs; pair += lanes) {
        X& first = x[turning.first(pair)];
        X& second = x[turning.second(pair)];
        f32 a = widen(first), b = widen(second);
        turning.turn(a, b, token, pair);
        first = narrow<X>(a);
        second = narrow<X>(b);
    }
}
