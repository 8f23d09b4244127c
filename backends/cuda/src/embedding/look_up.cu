// Rows of a table by id, dequantised. The table has floats, I8 with a scale a row, or the bytes of 4-bit formats. The blocks
// of files are described in halite-kernels' `linear/blocks.rs`.
#include "floats.cuh"

constexpr i32 THREADS = 256;
// Formats beside floats: the numbers are `table::code`'s.
constexpr i32 INT8 = 3, INT4 = 4, Q4_0 = 5, Q4_1 = 6, Q4_K = 7;

DEVICE f32 half_number(const u8* at) { return widen(f16{static_cast<u16>(at[0] | at[1] << 8)}); }

// The half of a byte.
DEVICE f32 code(u8 byte, bool upper) { return static_cast<f32>(upper ? byte >> 4 : byte & 15); }

// Element `i` of a group of 32: first all low halves, then all high ones.
DEVICE f32 code_of_32(const u8* codes, i32 i) { return code(codes[i & 15], i >= 16); }

DEVICE f32 q4k(const u8* block, i32 i) {
    const i32 g = i / 32;
    const i32 low = block[4 + g], high = block[8 + g];
    i32 scale = low & 63, least = high & 63;
    if (g >= 4) {
        scale = (high & 15) | (block[g] >> 6) << 4;
        least = high >> 4 | (low >> 6) << 4;
    }
    const f32 y = code(block[16 + 32 * (g / 2) + i % 32], g % 2 == 1);
    return half_number(block) * static_cast<f32>(scale) * y - half_number(block + 2) * static_cast<f32>(least);
}

DEVICE f32 element(const u8* row, i64 c, const f32* scales, i64 group_size, i32 format) {
    switch (format) {
    case INT8:
        return static_cast<f32>(static_cast<i8>(row[c])) * scales[0];
    case INT4:
        return (code(row[c / 2], c % 2 == 1) - 8.0f) * scales[c / group_size];
    case Q4_0: {
        const u8* block = row + c / 32 * 18;
        return half_number(block) * (code_of_32(block + 2, c % 32) - 8.0f);
    }
    case Q4_1: {
        const u8* block = row + c / 32 * 20;
        return half_number(block) * code_of_32(block + 4, c % 32) + half_number(block + 2);
    }
    case Q4_K:
        return q4k(row + c / 256 * 144, c % 256);
    default:
        return read_float(row, c, format);
    }
}

// Block b has part b % parts of token b / parts. Rows of the table are `table_stride` bytes apart. Ids that it does not have
// give zeros.
KERNEL void __launch_bounds__(THREADS)
    look_up(const u8* table, const f32* scales, const i32* ids, void* out, i64 vocabulary, i64 table_stride,
            i64 scales_stride, i64 group_size, i64 hidden, i64 out_stride, i64 parts, i32 format, i32 out_type, f32 factor) {
    const i64 token = blockIdx.x / parts;
    const i64 c = blockIdx.x % parts * THREADS + threadIdx.x;
    if (c >= hidden) return;
    const i64 id = ids[token];
    f32 y = 0.0f;
    if (id >= 0 && id < vocabulary) {
        y = element(table + id * table_stride, c, scales + id * scales_stride, group_size, format);
        // A factor of 1 leaves the bits of a NaN too.
        if (factor != 1.0f) y *= factor;
    }
    write_float(out, token * out_stride + c, y, out_type);
}
