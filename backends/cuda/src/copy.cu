// Elements of one size from a tensor of any strides to another of the same shape. ELEMENT is a type of that size.
#include "prelude.cuh"

// Every thread takes elements a grid apart. Index 0 is the outermost dimension.
KERNEL void __launch_bounds__(256)
    copy(const ELEMENT* from, ELEMENT* to, i64 elements, i64 dim1, i64 dim2, i64 dim3, i64 from0, i64 from1, i64 from2,
         i64 from3, i64 to0, i64 to1, i64 to2, i64 to3) {
    const i64 step = static_cast<i64>(gridDim.x) * blockDim.x;
    for (i64 at = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; at < elements; at += step) {
        i64 rest = at;
        const i64 i3 = rest % dim3;
        rest /= dim3;
        const i64 i2 = rest % dim2;
        rest /= dim2;
        const i64 i1 = rest % dim1;
        const i64 i0 = rest / dim1;
        to[i0 * to0 + i1 * to1 + i2 * to2 + i3 * to3] = from[i0 * from0 + i1 * from1 + i2 * from2 + i3 * from3];
    }
}
