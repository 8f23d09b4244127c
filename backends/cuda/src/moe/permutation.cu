// Rows to experts and back: a stable counting sort of slots, copies of rows to their places, and each token's sum over its
// rows. Nothing depends on the order in which blocks run.
#include "element.cuh"
#include "team.cuh"

// Blocks of a multiprocessor at least: with more the compiler would spill registers.
constexpr i32 BLOCKS = 2;

// The sort, without memory of its own: a block an expert counts the slots of those before it and its own, which are few and
// read from the cache. One more has the slots of experts that are elsewhere, whose place among the experts is `count`. Thread
// l has the l-th part of all slots. `slots_of`, which may be null, is told the slot of each place.
KERNEL void __launch_bounds__(BLOCK, BLOCKS)
    sort(const i32* ids, i32* offsets, i32* places, i32* slots_of, i64 slots, i64 ids_stride, i64 places_stride, i32 top_k,
         i32 first_expert, i32 count) {
    __shared__ u32 own_counts[BLOCK], earlier_counts[BLOCK];
    const i32 lane = threadIdx.x;
    const u32 expert = blockIdx.x;
    const i64 part = (slots + BLOCK - 1) / BLOCK;
    const i64 first = lane * part < slots ? lane * part : slots;
    const i64 last = first + part < slots ? first + part : slots;
    const auto wanted = [&](i64 at) {
        const u32 place = static_cast<u32>(ids[at / top_k * ids_stride + at % top_k]) - static_cast<u32>(first_expert);
        return place < static_cast<u32>(count) ? place : static_cast<u32>(count);
    };
    u32 own = 0, earlier = 0;
    for (i64 at = first; at < last; at++) {
        const u32 other = wanted(at);
        own += other == expert;
        earlier += other < expert;
    }
    own_counts[lane] = own;
    earlier_counts[lane] = earlier;
    __syncthreads();
    for (i32 step = 1; step < BLOCK; step *= 2) {
        const u32 more_own = lane >= step ? own_counts[lane - step] : 0;
        const u32 more_earlier = lane >= step ? earlier_counts[lane - step] : 0;
        __syncthreads();
        own_counts[lane] += more_own;
        earlier_counts[lane] += more_earlier;
        __syncthreads();
    }
    const u32 begin = earlier_counts[BLOCK - 1];
    if (lane == 0) offsets[expert] = static_cast<i32>(begin);
    u32 place = begin + own_counts[lane] - own;
    for (i64 at = first; at < last; at++) {
        if (wanted(at) != expert) continue;
        const bool elsewhere = expert == static_cast<u32>(count);
        places[at / top_k * places_stride + at % top_k] = elsewhere ? -1 : static_cast<i32>(place);
        if (slots_of != nullptr && !elsewhere) slots_of[place] = static_cast<i32>(at);
        place++;
    }
}

// Part `part` of a row, as bits.
template <typename T> DEVICE void copy_unit(void* to, const void* from, i64 part) {
    static_cast<T*>(to)[part] = static_cast<const T*>(from)[part];
}

// A block a slot and part of its row, of which a thread moves one unit: an element, or 16 bytes. Strides are in bytes.
KERNEL void __launch_bounds__(BLOCK, BLOCKS)
    gather(const u8* x, u8* rows, const i32* places, const f32* weights, const f32* scales, f32* row_scales, i64 units,
           i64 parts, i64 x_stride, i64 rows_stride, i64 places_stride, i64 weights_stride, i32 top_k, i32 type, i32 unit) {
    const i64 slot = blockIdx.x / parts;
    const i64 at = blockIdx.x % parts * BLOCK + threadIdx.x;
    const i64 token = slot / top_k, s = slot % top_k;
    const i32 place = places[token * places_stride + s];
    if (place < 0) return;
    x += token * x_stride;
    rows += place * rows_stride;
    if (at == 0 && row_scales) {
        row_scales[place] = weights ? __fmul_rn(scales[token], weights[token * weights_stride + s]) : scales[token];
    }
    if (at >= units) return;
    if (weights && type <= BF16) {
        put(rows, at, element(x, at, type) * weights[token * weights_stride + s], type);
    } else if (unit == 16) {
        copy_unit<Bytes16>(rows, x, at);
    } else if (unit == 4) {
        copy_unit<u32>(rows, x, at);
    } else if (unit == 2) {
        copy_unit<u16>(rows, x, at);
    } else {
        copy_unit<u8>(rows, x, at);
    }
}

// A thread an element of the result: its token's rows in ascending slot, each product and each sum rounded. With `by_slot`,
// places are experts, of which those from `first_place` on are here, and a slot is its row.
KERNEL void __launch_bounds__(BLOCK, BLOCKS)
    combine(const void* rows, const f32* scales, const i32* places, const f32* weights, const void* added0, const void* added1,
            const void* added2, void* out, i64 columns, i64 parts, i64 place_count, i64 rows_stride, i64 places_stride,
            i64 weights_stride, i64 stride0, i64 stride1, i64 stride2, i64 out_stride, i32 top_k, i32 row_type, i32 type,
            i32 first_place, i32 by_slot) {
    const i64 token = blockIdx.x / parts;
    const i64 c = blockIdx.x % parts * BLOCK + threadIdx.x;
    if (c >= columns) return;
    f32 sum = 0.0f;
    for (i32 slot = 0; slot < top_k; slot++) {
        const i64 found = static_cast<i64>(places[token * places_stride + slot]) - first_place;
        if (found < 0 || found >= place_count) continue;
        const i64 place = by_slot ? token * top_k + slot : found;
        f32 y = element(rows, place * rows_stride + c, row_type);
        if (scales) y = __fmul_rn(y, scales[place]);
        if (weights) y = __fmul_rn(y, weights[token * weights_stride + slot]);
        sum = __fadd_rn(sum, y);
    }
    if (added0) sum = __fadd_rn(sum, element(added0, token * stride0 + c, type));
    if (added1) sum = __fadd_rn(sum, element(added1, token * stride1 + c, type));
    if (added2) sum = __fadd_rn(sum, element(added2, token * stride2 + c, type));
    put(out, token * out_stride + c, sum, type);
}
