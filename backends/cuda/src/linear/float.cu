// A layer of F16 or BF16 by the tensor cores.

#include "linear/float.cuh"

// Blocks of rows along x of the grid, of results along y.
KERNEL void __launch_bounds__(Tile::THREADS, Tile::BLOCKS) linear_float(Operands of, Epilogue after) {
    extern __shared__ __align__(128) u8 stages[];
    multiply_tile(of, after, EvenRows{of.x, of.x_stride, static_cast<i32>(blockIdx.x) * BLOCK_M, of.rows}, stages);
}
