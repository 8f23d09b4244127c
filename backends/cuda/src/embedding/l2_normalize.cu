// Rows of length 1, a block a row.
#include "floats.cuh"
#include "team.cuh"

template <typename X> DEVICE void normalize(const X* x, X* out, i64 columns, f32 eps) {
    const i32 lane = threadIdx.x;
    // Magnitudes as bits: they are in order, infinity above what is finite, NaN above infinity.
    u32 most = 0;
    for (i64 c = lane; c < columns; c += BLOCK) most = Most{}(most, __float_as_uint(widen(x[c])) & 0x7fffffffu);
    most = join_team<BLOCK>(most, Most{});
    // A power of two: it changes no digit. Up to 2^40, and of all of F32 times 2^-80, 2^31 squares add up within F32; and
    // those that 2^-80 makes subnormal are of elements that do not count beside one above 2^40.
    const f32 shrink = most > 0x53800000u ? 0x1p-80f : 1.0f;
    f32 sum = 0.0f;
    for (i64 c = lane; c < columns; c += BLOCK) {
        const f32 part = widen(x[c]) * shrink;
        sum = fmaf(part, part, sum);
    }
    const f32 length = sqrtf(join_team<BLOCK>(sum, Add{}));
    const f32 inverse = 1.0f / fmaxf(length, eps * shrink);
    for (i64 c = lane; c < columns; c += BLOCK) {
        const f32 value = widen(x[c]);
        const bool finite = (__float_as_uint(value) & 0x7f800000u) != 0x7f800000u;
        f32 y = value * inverse * shrink;
        if (most > 0x7f800000u || !finite) {
            y = __uint_as_float(0x7fc00000u);
        } else if (most == 0x7f800000u) {
            y = 0.0f;
        }
        out[c] = narrow<X>(y);
    }
}

KERNEL void __launch_bounds__(BLOCK)
    l2_normalize(const void* x, void* out, i64 columns, i64 x_stride, i64 out_stride, i32 type, f32 eps) {
    const i64 from = blockIdx.x * x_stride, to = blockIdx.x * out_stride;
    switch (type) {
    case F32:
        return normalize(static_cast<const f32*>(x) + from, static_cast<f32*>(out) + to, columns, eps);
    case F16:
        return normalize(static_cast<const f16*>(x) + from, static_cast<f16*>(out) + to, columns, eps);
    default:
        return normalize(static_cast<const bf16*>(x) + from, static_cast<bf16*>(out) + to, columns, eps);
    }
}
