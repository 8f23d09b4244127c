// Elements of one size from a tensor of any strides to another of the same shape.
#include "prelude.cuh"

// Index 0 is the outermost dimension.
struct Shape {
    i64 elements, dim1, dim2, dim3;
};
struct Strides {
    i64 s0, s1, s2, s3;
};

// Every thread takes elements a grid apart.
template <typename T> DEVICE void copy_elements(const T* from, T* to, const Shape& shape, const Strides& f, const Strides& t) {
    const i64 step = static_cast<i64>(gridDim.x) * blockDim.x;
    for (i64 at = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; at < shape.elements; at += step) {
        i64 rest = at;
        const i64 i3 = rest % shape.dim3;
        rest /= shape.dim3;
        const i64 i2 = rest % shape.dim2;
        rest /= shape.dim2;
        const i64 i1 = rest % shape.dim1;
        const i64 i0 = rest / shape.dim1;
        to[i0 * t.s0 + i1 * t.s1 + i2 * t.s2 + i3 * t.s3] = from[i0 * f.s0 + i1 * f.s1 + i2 * f.s2 + i3 * f.s3];
    }
}

// Elements are `size` bytes: 1, 2 or 4.
KERNEL void __launch_bounds__(256)
    copy(const void* from, void* to, i64 elements, i64 dim1, i64 dim2, i64 dim3, i64 from0, i64 from1, i64 from2, i64 from3,
         i64 to0, i64 to1, i64 to2, i64 to3, i32 size) {
    const Shape shape = {elements, dim1, dim2, dim3};
    const Strides f = {from0, from1, from2, from3}, t = {to0, to1, to2, to3};
    switch (size) {
    case 1:
        return copy_elements(static_cast<const u8*>(from), static_cast<u8*>(to), shape, f, t);
    case 2:
        return copy_elements(static_cast<const u16*>(from), static_cast<u16*>(to), shape, f, t);
    default:
        return copy_elements(static_cast<const u32*>(from), static_cast<u32*>(to), shape, f, t);
    }
}
