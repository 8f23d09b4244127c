// Heads of floats in place.
#include "floats.cuh"
#include "rope/turn.cuh"

constexpr i32 THREADS = 256;

// A thread's pairs of a head.
template <typename X> DEVICE void turn_head(X* x, const Turning& turning, i64 token, i32 lane, i32 lanes) {
    for (i64 pair = lane; pair < turning.pairs; pair += lanes) {
        X& first = x[turning.first(pair)];
        X& second = x[turning.second(pair)];
        f32 a = widen(first), b = widen(second);
        turning.turn(a, b, token, pair);
        first = narrow<X>(a);
        second = narrow<X>(b);
    }
}

// A team of `lanes` threads turns a head.
KERNEL void __launch_bounds__(THREADS)
    rope(void* x, const f32* cos_sin, i64 rows, i64 heads, i64 pairs, i64 x_token, i64 x_head, i32 lanes, i32 type,
         i32 interleaved, f32 direction) {
    const i64 row = blockIdx.x * static_cast<i64>(THREADS / lanes) + threadIdx.x / lanes;
    if (row >= rows) return;
    const Turning turning = {cos_sin, pairs, interleaved, direction};
    const i64 token = row / heads;
    const i64 head = token * x_token + row % heads * x_head;
    const i32 lane = threadIdx.x % lanes;
    switch (type) {
    case F32:
        return turn_head(static_cast<f32*>(x) + head, turning, token, lane, lanes);
    case F16:
        return turn_head(static_cast<f16*>(x) + head, turning, token, lane, lanes);
    default:
        return turn_head(static_cast<bf16*>(x) + head, turning, token, lane, lanes);
    }
}
