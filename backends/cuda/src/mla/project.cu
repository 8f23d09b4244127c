// A product for each head: rows of tokens times the head's matrix, `[heads, k, n]`; what rows have beyond `k` goes through
// as it is. A block has 128 columns of up to TOKENS rows of a head: a lane four columns, a warp every so manieth of `k`. A
// result's sum is a chain of multiply-adds a warp, joined in the order of warps: the rows beside it do not show in its bits.

#include "attention/element.cuh"
#include "team.cuh"

constexpr i32 WARPS = BLOCK / 32, COLUMNS = 128, TOKENS = 8;
// Elements of each row that are shared at once.
constexpr i32 CHUNK = 256;

// Rows, an element of all of them together, and then each warp's sums `[WARPS, TOKENS, COLUMNS]`.
struct Shared {
    alignas(16) f32 rows[CHUNK * TOKENS];
    alignas(16) f32 sums[WARPS * TOKENS * COLUMNS];
};

// Rows `[tokens]` of a head, and how their elements lie.
struct HeadRows {
    const void* x;
    i64 first, token;
    i32 type, tokens, k;

    DEVICE f32 at(i32 t, i32 d) const { return element(x, first + t * token + d, type); }
};

// The sums of up to `T` rows, each warp's. `columns` are those that the matrix has in memory: a multiple of four.
template <typename W, i32 T>
DEVICE void sum_columns(Shared& shared, const HeadRows& rows, const W* w, i64 columns, i64 column) {
    const i32 warp = threadIdx.x / 32;
    const bool there = column < columns;
    f32 sums[T][4] = {};
    for (i32 start = 0; start < rows.k; start += CHUNK) {
        const i32 len = min(CHUNK, rows.k - start);
        __syncthreads();
#pragma unroll 1
        for (i32 i = threadIdx.x; i < len * T; i += BLOCK) {
            const i32 t = i / len, d = i % len;
            shared.rows[d * T + t] = t < rows.tokens ? rows.at(t, start + d) : 0.0f;
        }
        __syncthreads();
        if (!there) continue;
        const W* from = w + start * columns + column;
#pragma unroll 4
        for (i32 d = warp; d < len; d += WARPS) {
            f32 weights[4];
            load<4>(weights, from + d * columns);
#pragma unroll
            for (i32 t = 0; t < T; t++) {
                const f32 x = shared.rows[d * T + t];
#pragma unroll
                for (i32 i = 0; i < 4; i++) sums[t][i] = fmaf(x, weights[i], sums[t][i]);
            }
        }
    }
    if (!there) return;
#pragma unroll
    for (i32 t = 0; t < T; t++) {
#pragma unroll
        for (i32 i = 0; i < 4; i++) shared.sums[(warp * TOKENS + t) * COLUMNS + 4 * (threadIdx.x % 32) + i] = sums[t][i];
    }
}

template <typename W> DEVICE void sum_rows(Shared& shared, const HeadRows& rows, const W* w, i64 columns, i64 column) {
    // One row alone takes no multiplication by rows that are not there.
    if (rows.tokens == 1) {
        sum_columns<W, 1>(shared, rows, w, columns, column);
    } else {
        sum_columns<W, TOKENS>(shared, rows, w, columns, column);
    }
}

// Along x of the grid the tiles of tokens of each head in turn, along y tiles of columns.
KERNEL void __launch_bounds__(BLOCK)
    mla_project(const void* x, const void* w, void* out, i64 x_token, i64 x_head, i64 out_token, i64 out_head, i64 columns,
                i32 tokens, i32 tiles, i32 k, i32 n, i32 carried, i32 x_type, i32 w_type, i32 out_type) {
    __shared__ Shared shared;
    const i64 block = blockIdx.x, head = block / tiles, first = block % tiles * TOKENS;
    const i64 tile = static_cast<i64>(blockIdx.y) * COLUMNS, column = tile + 4 * (threadIdx.x % 32);
    const i32 count = static_cast<i32>(min(static_cast<i64>(TOKENS), tokens - first));
    const HeadRows rows = {x, first * x_token + head * x_head, x_token, x_type, count, k};
    const i64 matrix = head * k * columns, to = first * out_token + head * out_head;
    if (w_type == IS_F32) {
        sum_rows(shared, rows, static_cast<const f32*>(w) + matrix, columns, column);
    } else if (w_type == IS_F16) {
        sum_rows(shared, rows, static_cast<const f16*>(w) + matrix, columns, column);
    } else {
        sum_rows(shared, rows, static_cast<const bf16*>(w) + matrix, columns, column);
    }
    __syncthreads();
#pragma unroll 1
    for (i32 i = threadIdx.x; i < count * COLUMNS; i += BLOCK) {
        const i32 t = i / COLUMNS, c = i % COLUMNS;
        if (tile + c >= n) continue;
        f32 sum = shared.sums[t * COLUMNS + c];
#pragma unroll
        for (i32 warp = 1; warp < WARPS; warp++) sum += shared.sums[(warp * TOKENS + t) * COLUMNS + c];
        put(out, to + t * out_token + tile + c, sum, out_type);
    }
    if (blockIdx.y > 0) return;
#pragma unroll 1
    for (i32 i = threadIdx.x; i < count * carried; i += BLOCK) {
        const i32 t = i / carried, d = i % carried;
        put(out, to + t * out_token + n + d, rows.at(t, k + d), out_type);
    }
}
