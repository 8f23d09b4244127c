// A part's scores, an invocation a position for all rows.

struct Tile {
    sequence: u32,
    // The position of the first token.
    own: i32,
    // The position of the sequence's first row of the step.
    step_first: i32,
    tree_at: u32,
    kv_head: u32,
}

fn cache_row(tile: Tile, position: i32) -> u32 {
    let at = u32(position);
    let block = tables(plan.blocks_at + tile.sequence * plan.table_row + at / plan.block_size);
    let slot = u32(clamp(block, 0, plan.cache_blocks - 1)) * plan.block_size + at % plan.block_size;
    return slot * plan.kv_heads + tile.kv_head;
}

// The score of a row, as bits, of `scale · q·k`.
fn score(product: f32, tile: Tile, place: Place, position: i32) -> u32 {
    var s = product;
    if plan.soft_cap {
        s = plan.cap * hyperbolic_tangent(divide(s, plan.cap));
    }
    let own = tile.own + i32(place.token);
    if plan.alibi {
        let slope = bitcast<f32>(tables(plan.slopes_at + place.head));
        s = fma(-slope, f32(abs(position - own)), s);
    }
    if plan.mask == TREE && position >= tile.step_first {
        if !comes_after(tile.tree_at, own - tile.step_first, position - tile.step_first) {
            return UNSEEN;
        }
    }
    return select(bitcast<u32>(s), 0x7fc00000u, is_nan(s));
}

// Scores of the part that begins at `part`, between `first` and `end`.
fn score_part(rows: Rows, tile: Tile, part: i32, first: i32, end: i32, lane: u32) {
    for (var j = lane; j < plan.part; j += LANES) {
        let position = part + i32(j);
        let there = position >= first && position < end;
        if there {
            let row = cache_row(tile, position);
            cache_rows[j] = row;
            let products = scaled_products(row);
            for (var r = 0u; r < ROWS; r++) {
                scores[r * plan.part + j] = bitcast<u32>(products[r]);
            }
        }
        for (var r = 0u; r < plan.rows; r++) {
            let at = r * plan.part + j;
            var bits = UNSEEN;
            if there && position >= seen[r].x && position < seen[r].y {
                bits = score(bitcast<f32>(scores[at]), tile, place_of(rows, r), position);
            }
            scores[at] = bits;
        }
    }
}
