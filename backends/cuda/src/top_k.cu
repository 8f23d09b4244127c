// The k best of each row. A block makes up to CAPACITY results of a row: it finds the elements that they begin and end with
// by their digits, gathers what lies between in shared memory and sorts it there.
//
// Elements are in order by keys of 64 bits, greatest first, all different: the upper word rises with the value, NaN is
// least; the lower word falls with the column. So the order in which threads gather them does not matter.
#include "floats.cuh"

constexpr i32 BLOCK = 256;
constexpr i32 CAPACITY = 1024;

struct Row {
    const void* x;
    i64 columns;
    i32 type;
    i32 smallest;

    DEVICE u64 key(i64 c) const {
        u32 bits = __float_as_uint(read_float(x, c, type));
        const u32 magnitude = bits & 0x7fffffffu;
        // -0 is 0.
        if (magnitude == 0) bits = 0;
        u32 rising = bits >> 31 ? ~bits : bits | 0x80000000u;
        if (smallest) rising = ~rising;
        if (magnitude > 0x7f800000u) rising = 0;
        return static_cast<u64>(rising) << 32 | static_cast<u32>(~static_cast<u32>(c));
    }
};

// The upper so many bytes of a key.
DEVICE u64 upper(i32 bytes) { return bytes == 0 ? 0 : ~0ull << (64 - 8 * bytes); }

// The key of this rank, greatest first, up to the digits that tell it from all others; below those it has zeros, or ones.
// All threads of the block take part.
DEVICE u64 ranked(const Row& row, i64 rank, bool ones) {
    __shared__ u32 counts[BLOCK], sums[BLOCK], chosen[3];
    const i32 lane = threadIdx.x;
    u64 prefix = 0;
    u32 left = static_cast<u32>(rank);
    for (i32 digit = 0; digit < 8; digit++) {
        counts[lane] = 0;
        __syncthreads();
        const u64 known = upper(digit);
        const i32 shift = 56 - 8 * digit;
        for (i64 c = lane; c < row.columns; c += BLOCK) {
            const u64 key = row.key(c);
            if ((key & known) == prefix) atomicAdd(&counts[key >> shift & 255], 1u);
        }
        __syncthreads();
        // How many have this digit or a greater one.
        const u32 own = counts[lane];
        sums[lane] = own;
        for (i32 step = 1; step < BLOCK; step *= 2) {
            __syncthreads();
            const u32 more = lane + step < BLOCK ? sums[lane + step] : 0;
            __syncthreads();
            sums[lane] += more;
        }
        const u32 above = sums[lane] - own;
        if (above <= left && left < above + own) {
            chosen[0] = lane;
            chosen[1] = above;
            chosen[2] = own;
        }
        __syncthreads();
        left -= chosen[1];
        prefix |= static_cast<u64>(chosen[0]) << shift;
        if (chosen[2] == 1) {
            if (ones) prefix |= ~upper(digit + 1);
            break;
        }
    }
    // Until all have read what was chosen nobody writes it again.
    __syncthreads();
    return prefix;
}

KERNEL void __launch_bounds__(BLOCK)
    top_k(const void* x, void* values, i32* ids, i64 columns, i64 k, i64 pieces, i64 x_stride, i64 values_stride,
          i64 ids_stride, i32 type, i32 smallest) {
    __shared__ u64 best[CAPACITY];
    __shared__ i32 gathered;
    const i32 lane = threadIdx.x;
    const i64 r = blockIdx.x / pieces;
    const i64 size = type == 0 ? 4 : 2;
    const Row row{static_cast<const u8*>(x) + r * x_stride * size, columns, type, smallest};
    const i64 first = blockIdx.x % pieces * CAPACITY;
    const i32 count = static_cast<i32>(k - first < CAPACITY ? k - first : CAPACITY);
    u64 most = ~0ull, least = 0;
    if (columns > CAPACITY) {
        if (first > 0) most = ranked(row, first, true);
        if (first + count < columns) least = ranked(row, first + count - 1, false);
    }
    if (lane == 0) gathered = 0;
    // Beyond what is gathered are keys below all others.
    for (i32 place = lane; place < CAPACITY; place += BLOCK) best[place] = 0;
    __syncthreads();
    for (i64 c = lane; c < columns; c += BLOCK) {
        const u64 key = row.key(c);
        if (least <= key && key <= most) {
            const i32 place = atomicAdd(&gathered, 1);
            if (place < CAPACITY) best[place] = key;
        }
    }
    __syncthreads();
    // A bitonic sort of the power of two that holds them.
    const i32 held = gathered < CAPACITY ? gathered : CAPACITY;
    i32 sorted = 1;
    while (sorted < held) sorted *= 2;
    for (i32 run = 2; run <= sorted; run *= 2) {
        for (i32 step = run / 2; step > 0; step /= 2) {
            for (i32 pair = lane; pair < sorted / 2; pair += BLOCK) {
                const i32 a = 2 * pair - (pair & (step - 1));
                const u64 left = best[a], right = best[a + step];
                if ((left < right) != ((a & run) != 0)) {
                    best[a] = right;
                    best[a + step] = left;
                }
            }
            __syncthreads();
        }
    }
    // Values are copied as bits.
    for (i32 place = lane; place < count; place += BLOCK) {
        const u32 c = ~static_cast<u32>(best[place]);
        const i64 to = r * values_stride + first + place;
        if (type == 0) {
            static_cast<u32*>(values)[to] = static_cast<const u32*>(row.x)[c];
        } else {
            static_cast<u16*>(values)[to] = static_cast<const u16*>(row.x)[c];
        }
        ids[r * ids_stride + first + place] = static_cast<i32>(c);
    }
}
