// A workgroup a row: of a token the heads of queries, which turn in place, then keys, which turn on their way to the cache,
// then values.

fn element(kind: u32, token: u32, head: u32, d: u32) -> f32 {
    if kind == VALUES {
        return v(token * im.v_token + head * im.v_head + d);
    }
    let start = token * im.k_token + head * im.k_head;
    if d >= 2u * im.pairs {
        return k(start + d);
    }
    let pair = select(d % im.pairs, d / 2u, INTERLEAVED);
    let at = elements(pair);
    let y = turned(k(start + at.x), k(start + at.y), angle(token, pair));
    return select(y.y, y.x, d == at.x);
}

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = linear_group(group, groups);
    let rows = im.heads + 2u * im.kv_heads;
    let token = index / rows;
    if token >= im.tokens {
        return;
    }
    let row = index % rows;
    if row < im.heads {
        turn_head(token, row, lane);
    } else {
        let written = row - im.heads;
        write_row(written / im.kv_heads, token, written % im.kv_heads, lane);
    }
}
