// Steps of a walk over positions, and how their keys and values come to shared memory for the tensor cores: rows of 16-bit
// elements, 16 bytes further apart than they are long, so that one chunk of eight rows is in eight different groups of banks.
// Those of INT8 come as they are, and are widened there; scales stay apart.
#pragma once
#include "attention/call.cuh"
#include "team.cuh"

// Threads of a block, positions of a step, and rows that a pass of 16 threads each copies.
constexpr i32 THREADS = 128, STEP = 32, PASS = THREADS / 16;

// The type that values are multiplied in: whole numbers of 8 bits are exact in both, and their scales need BF16's range.
#if INT8
typedef bf16 Value;
#else
typedef ELEMENT Value;
#endif

// Positions whose scores are weighed together: up to STEP of a part, the same ones for every row of every tile.
struct Step {
    i32 part, first; // where its part begins, and it
};

// The step that a position is of.
DEVICE Step step_of(const Call& call, i32 position) {
    const i32 part = position / call.part * call.part;
    return {part, part + (position - part) / STEP * STEP};
}

DEVICE Step after(const Call& call, const Step& step) {
    const i32 next = step.first + STEP, end = step.part + call.part;
    return {next < end ? step.part : end, min(next, end)};
}

// Those of a step's positions that the block reads.
DEVICE Positions positions_of(const Call& call, const Tile& tile, const Step& step) {
    const i32 end = min(step.first + STEP, step.part + call.part);
    return {max(tile.positions.first, step.first), min(tile.positions.end, end)};
}

// Shared memory of a block, in bytes from its beginning: queries, keys and values as they are multiplied, and what comes
// while that happens. Two places take turns. `shared` in mma.rs counts the same.
struct Room {
    i32 key_stride, value_stride; // of what is multiplied, queries too
    i32 key_bytes, value_bytes;   // of a row as it is stored
    i32 staged;                   // of a step's keys and values as they are stored
    i32 multiplied, coming;

    // `rows`: of queries.
    static DEVICE Room of(const Call& call, i32 rows) {
        Room room;
        room.key_stride = 2 * call.head_dim + 16;
        room.value_stride = 2 * call.value_dim + 16;
        room.multiplied = rows * room.key_stride;
        const i32 multiplied = STEP * (room.key_stride + room.value_stride);
        room.key_bytes = INT8 ? call.head_dim : 2 * call.head_dim;
        room.value_bytes = INT8 ? call.value_dim : 2 * call.value_dim;
        room.staged = INT8 ? STEP * (room.key_bytes + room.value_bytes) : multiplied;
        room.coming = INT8 ? room.multiplied + multiplied : room.multiplied;
        return room;
    }

    // Bytes between rows where they come.
    DEVICE i32 key_room() const { return INT8 ? key_bytes : key_stride; }
    DEVICE i32 value_room() const { return INT8 ? value_bytes : value_stride; }
    // Where keys of a step come, and are multiplied; values follow.
    DEVICE i32 place(i32 turn) const { return coming + turn * staged; }
    DEVICE i32 keys(i32 turn) const { return INT8 ? multiplied : place(turn); }
    DEVICE i32 values(i32 turn) const { return keys(turn) + STEP * key_stride; }
};

// A step's rows to `to`: of the cache where the block reads them, zeros elsewhere, so that nothing is multiplied that nobody
// wrote.
DEVICE void copy_rows(u32 to, i32 to_stride, const u8* from, i64 from_stride, i32 bytes, const i64* rows,
                      const Positions& in_step) {
#pragma unroll
    for (i32 pass = 0; pass < STEP / PASS; pass++) {
        const i32 place = PASS * pass + threadIdx.x / 16;
        const bool there = place >= in_step.first && place < in_step.end;
        const u8* row = there ? from + rows[place] * from_stride : from;
        for (i32 at = threadIdx.x % 16 * 16; at < bytes; at += 256) {
            // Where nothing is read the address must still be one.
            copy_async_16(to + place * to_stride + at, there ? row + at : row, there ? 16 : 0);
        }
    }
}

// Begins to bring a step's keys and values to `to`, from the rows of the cache that its positions have.
DEVICE void copy_step(const Call& call, const Tile& tile, const Room& room, const Step& step, const i64* rows, u32 to) {
    const Positions read = positions_of(call, tile, step);
    const Positions in_step = {read.first - step.first, read.end - step.first};
    constexpr i32 SIZE = INT8 ? 1 : 2;
    copy_rows(to, room.key_room(), call.keys, SIZE * static_cast<i64>(call.head_dim), room.key_bytes, rows, in_step);
    copy_rows(to + STEP * room.key_room(), room.value_room(), call.values, SIZE * call.value_stride, room.value_bytes, rows,
              in_step);
}

#if INT8
// Likewise the scales: a warp those of keys, another those of values.
DEVICE void copy_scales(const Call& call, const Tile& tile, const Step& step, const i64* rows, f32 (&scales)[2][STEP]) {
    const i32 which = threadIdx.x / STEP, position = step.first + threadIdx.x % STEP;
    if (which > 1) return;
    const Positions read = positions_of(call, tile, step);
    const f32* from = which == 0 ? call.key_scales : call.value_scales;
    const bool there = position >= read.first && position < read.end;
    if (there) from += rows[threadIdx.x % STEP];
    copy_async_4(shared_address(&scales[which][threadIdx.x % STEP]), from, there ? 4 : 0);
}

// Four whole numbers of 8 bits as elements of 16.
template <typename T> DEVICE void widen_four(u32& low, u32& high, u32 bytes) {
    f32 wide[4];
    const u32 moved = bytes ^ 0x80808080u;
    // Beside 2^23 the last bit is 1.
#pragma unroll
    for (i32 i = 0; i < 4; i++) wide[i] = __uint_as_float(__byte_perm(moved, 0x4b000000u, 0x7650u + i)) - 8388736.0f;
    low = narrow_pair<T>(wide[0], wide[1]);
    high = narrow_pair<T>(wide[2], wide[3]);
}

// A step's rows of bytes at `from` to rows of T.
template <typename T> DEVICE void widen_rows(u32 to, i32 to_stride, const u8* from, i32 bytes) {
#pragma unroll
    for (i32 pass = 0; pass < STEP / PASS; pass++) {
        const i32 place = PASS * pass + threadIdx.x / 16;
        for (i32 at = threadIdx.x % 16 * 8; at < bytes; at += 128) {
            const Pair<u32> eight = *reinterpret_cast<const Pair<u32>*>(from + place * bytes + at);
            Bytes16 wide;
            widen_four<T>(wide.words[0], wide.words[1], eight.first);
            widen_four<T>(wide.words[2], wide.words[3], eight.second);
            store_shared(to + place * to_stride + 2 * at, wide);
        }
    }
}
#endif

// The queries of a block to shared memory, zeros in rows that are not there.
DEVICE void copy_queries(const Call& call, const Tile& tile, const Room& room, u8* memory, i32 rows) {
    const ELEMENT* q = static_cast<const ELEMENT*>(call.q);
    const bool wide = reinterpret_cast<u64>(q) % 16 == 0 && call.q_token % 8 == 0 && call.q_head % 8 == 0;
    for (i32 row = threadIdx.x / 16; row < rows; row += PASS) {
        const bool there = row < tile.rows();
        const ELEMENT* from = there ? q + query_at(call, tile, row) : q;
        for (i32 at = threadIdx.x % 16 * 8; at < call.head_dim; at += 128) {
            u8* to = memory + row * room.key_stride + 2 * at;
            if (wide || !there) {
                copy_async_16(shared_address(to), there ? from + at : from, there ? 16 : 0);
                continue;
            }
            Bytes16 chunk;
#pragma unroll
            for (i32 i = 0; i < 4; i++) chunk.words[i] = word_at(from, at + 2 * i);
            store_shared(shared_address(to), chunk);
        }
    }
}
