// A linear layer of any format by dot products.

#include "linear/dot.cuh"

// Results of a row, a warp each; rows along x of the grid, blocks of results along y. With `adapters`, of each row, only the
// rows of one of them; then `residual` may be `out`.
KERNEL void __launch_bounds__(BLOCK, 4) linear_dot(Operands of, Epilogue after, const i32* adapters, i32 adapter) {
    const i64 row = blockIdx.x, result = static_cast<i64>(blockIdx.y) * (BLOCK / 32) + threadIdx.x / 32;
    // A warp as a whole.
    if (result >= after.results || (adapters != nullptr && adapters[row] != adapter)) return;
    dot_result(of, after, row, row, result, 1.0f);
}
