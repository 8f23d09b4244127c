// Blocks of columns times the normalised Walsh-Hadamard matrix, by halves of 1, 2, 4 ... in shared memory.
#include "team.cuh"

extern __shared__ f32 held[];

// A block of threads has `tile` columns of a row, a multiple of `size`, from those of part b % parts of row b / parts on.
KERNEL void __launch_bounds__(BLOCK)
    rotate(const X* x, OUT* out, const f32* factors, i64 x_stride, i64 out_stride, i64 columns, i64 parts, i32 tile, i32 size,
           f32 factor) {
    const i64 row = blockIdx.x / parts;
    const i64 first = blockIdx.x % parts * tile;
    const i32 count = static_cast<i32>(columns - first < tile ? columns - first : tile);
    x += row * x_stride + first;
    out += row * out_stride + first;
    for (i32 at = threadIdx.x; at < count; at += BLOCK) {
        const f32 y = widen(x[at]);
        held[at] = factors ? y / factors[first + at] : y;
    }
    __syncthreads();
    for (i32 half = 1; half < size; half *= 2) {
        for (i32 pair = threadIdx.x; pair < count / 2; pair += BLOCK) {
            const i32 left = pair / half * 2 * half + pair % half;
            const f32 a = held[left], b = held[left + half];
            held[left] = a + b;
            held[left + half] = a - b;
        }
        __syncthreads();
    }
    for (i32 at = threadIdx.x; at < count; at += BLOCK) out[at] = narrow<OUT>(held[at] * factor);
}
