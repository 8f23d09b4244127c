// y[t] *= sigmoid(x[t] · gate): a block a token. The sum's order is that of threads, whatever the number of tokens.
#include "element.cuh"
#include "team.cuh"

KERNEL void __launch_bounds__(BLOCK)
    shared_gate(const void* x, const f32* gate, void* y, i64 x_stride, i64 y_stride, i64 columns, i32 type) {
    const i64 from = blockIdx.x * x_stride, to = blockIdx.x * y_stride;
    f32 sum = 0.0f;
    for (i64 c = threadIdx.x; c < columns; c += BLOCK) sum = fmaf(element(x, from + c, type), gate[c], sum);
    const f32 share = 1.0f / (1.0f + expf(-join_team<BLOCK>(sum, Add())));
    for (i64 c = threadIdx.x; c < columns; c += BLOCK) put(y, to + c, __fmul_rn(element(y, to + c, type), share), type);
}
