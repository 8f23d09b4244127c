// A call over a layer of a cache: what the kernels that read keys and values take, in the order of `Call::described` in call.rs,
// and the rows of a block.
#pragma once
#include "attention/element.cuh"
#include "attention/state.cuh"
#include "attention/visible.cuh"

#define CALL_PARAMETERS                                                                                                      \
    const void *q, const u8 *keys, const u8 *values, const f32 *key_scales, const f32 *value_scales, const f32 *slopes,      \
        const i32 *block_table, const i32 *chains, const i32 *tiles, const i32 *items, void *out, f32 *log_sum_exp,          \
        const f32 *sinks, f32 *scratch, const f32 *in_max, const f32 *in_sum, const f32 *in_values, i64 q_token, i64 q_head, \
        i64 out_token, i64 out_head, i64 log_token, i64 in_max_token, i64 in_sum_token, i64 in_token, i64 in_head,           \
        i64 value_stride, i64 table_row, i32 q_first, i32 type, i32 head_dim, i32 value_dim, i32 block_size, i32 kv_heads,   \
        i32 group, i32 row_heads, i32 row_room, i32 part, i32 mask, i32 span, i32 format, i32 whole_values, f32 scale,       \
        f32 soft_cap
#define CALL_ARGUMENTS                                                                                                       \
    {q,         keys,         values,       key_scales, value_scales, slopes,    block_table, chains,    tiles,      items,  \
     out,       log_sum_exp,  sinks,        scratch,    in_max,       in_sum,    in_values,   q_token,   q_head,     out_token, \
     out_head,  log_token,    in_max_token, in_sum_token, in_token,   in_head,   value_stride, table_row, q_first,   type,   \
     head_dim,  value_dim,    block_size,   kv_heads,   group,        row_heads, row_room,    part,      mask,       span,   \
     format,    whole_values, scale,        soft_cap}

struct Call {
    const void* q; // [tokens, heads, head_dim], from token q_first on
    const u8 *keys, *values;
    const f32 *key_scales, *value_scales; // of INT8, or null
    const f32* slopes;                    // [heads], or null
    const i32 *block_table, *chains, *tiles, *items;
    void* out; // null where states go to `scratch`
    f32* log_sum_exp;
    const f32* sinks;
    f32* scratch;
    const f32 *in_max, *in_sum, *in_values; // the state that tiles which are read whole begin with, or null
    i64 q_token, q_head, out_token, out_head, log_token, in_max_token, in_sum_token, in_token, in_head, value_stride, table_row;
    i32 q_first, type, head_dim, value_dim, block_size, kv_heads, group, row_heads;
    i32 row_room; // rows of a block at most
    i32 part;     // positions of a part
    i32 mask, span, format, whole_values;
    f32 scale, soft_cap; // no cap is 0
};

// The rows of a block: tokens of a sequence with query heads of one KV head each, `row = token * heads + head`.
struct Tile {
    i32 first_token, tokens, first_head, heads, kv_head;
    i32 own;        // the position of the first token
    i32 step_first; // that of the sequence's first row of the step
    const i32 *block_table, *chains;
    Positions read; // of the step's range
    bool whole;     // one block reads all that it sees
    // Of the item: positions, and where its state goes.
    Positions positions;
    i64 slot;

    DEVICE i32 rows() const { return tokens * heads; }
    DEVICE i32 token(i32 row) const { return row / heads; }
    DEVICE i32 head(i32 row) const { return first_head + row % heads; }
};

// What the block `index` of a launch does; `Tile` and `Item` of `halite_kernels::attention::cut`.
DEVICE Tile tile_of(const Call& call, i64 index) {
    const i32 head_tiles = (call.group + call.row_heads - 1) / call.row_heads;
    const i32* item = call.items + 4 * (index / (call.kv_heads * head_tiles));
    const i32* words = call.tiles + 12 * static_cast<i64>(item[0]);
    const i32 kv_head = index / head_tiles % call.kv_heads, first = index % head_tiles * call.row_heads;
    Tile tile;
    tile.first_token = words[0];
    tile.tokens = words[1];
    tile.first_head = kv_head * call.group + first;
    tile.heads = min(call.row_heads, call.group - first);
    tile.kv_head = kv_head;
    tile.own = words[3];
    tile.step_first = words[5];
    tile.block_table = call.block_table + words[2] * call.table_row;
    tile.chains = call.chains + 2 * static_cast<i64>(words[4]);
    tile.read = {words[6], words[7]};
    tile.whole = words[10] != 0;
    tile.positions = {item[1], item[2]};
    tile.slot = item[3];
    return tile;
}

// The row of keys and values that a position has.
DEVICE i64 cache_row(const Call& call, const Tile& tile, i32 position) {
    const i64 block = tile.block_table[position / call.block_size];
    return (block * call.block_size + position % call.block_size) * call.kv_heads + tile.kv_head;
}

DEVICE i64 query_at(const Call& call, const Tile& tile, i32 row) {
    return (tile.first_token - call.q_first + tile.token(row)) * call.q_token + tile.head(row) * call.q_head;
}

DEVICE i64 scratch_at(const Call& call, const Tile& tile, i32 row) {
    return ((tile.slot + tile.token(row)) * call.group * call.kv_heads + tile.head(row)) * (call.value_dim + 2);
}

// Whether a row sees a position between the first and the last that it sees: no, at the gaps of a tree.
DEVICE bool sees(const Call& call, const Tile& tile, i32 row, i32 position) {
    if (call.mask != TREE || position < tile.step_first) return true;
    return comes_after(tile.chains, tile.own + tile.token(row) - tile.step_first, position - tile.step_first);
}

// What becomes of `scale * q.k` of a row at the position `own`.
DEVICE f32 biased(const Call& call, f32 slope, i32 own, i32 position, f32 score) {
    if (call.soft_cap > 0.0f) score = call.soft_cap * tanhf(score / call.soft_cap);
    if (call.slopes != nullptr) score = fmaf(-slope, static_cast<f32>(abs(position - own)), score);
    return score;
}
