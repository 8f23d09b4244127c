// A layer of INT8 activations whose scales, or those of the weights, change along K, by the tensor cores.

#include "linear/group_wise.cuh"

// Blocks of rows along x of the grid, of results along y.
KERNEL void __launch_bounds__(Tile::THREADS, BLOCKS) linear_group_wise(Operands of, Epilogue after) {
    extern __shared__ __align__(128) u8 stages[];
    multiply_tile(of, after, EvenRows{of.x, of.x_stride, static_cast<i32>(blockIdx.x) * BLOCK_M, of.rows}, stages);
}
