// Normed rows to integers, a team a row.
#include "norm/row.cuh"
#include "quantize/rows.cuh"

KERNEL void __launch_bounds__(BLOCK, BLOCKS) norm_quantize(NORM_PARAMETERS, QUANTIZE_PARAMETERS(f32)) {
    const Integers<f32> integers = QUANTIZE_ARGUMENTS;
    const NormedRow row = NORM_ARGUMENTS;
    integers.run(row, lanes);
}
