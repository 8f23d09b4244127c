// The query rows of a workgroup: tokens, and within each the heads that share the KV head.

fn key_quads() -> u32 {
    return (plan.head_dim + 3u) / 4u;
}

struct Rows {
    first_token: u32,
    tokens: u32,
    first_head: u32,
    heads: u32,
}

struct Place {
    there: bool,
    // Of the tile.
    token: u32,
    head: u32,
}

fn place_of(rows: Rows, r: u32) -> Place {
    let token = r / plan.row_heads;
    let head = r % plan.row_heads;
    return Place(token < rows.tokens && head < rows.heads, token, rows.first_head + head);
}

// Elements `4 quad` and on of a query, of tokens from `q_first` on, 0 beyond its last.
fn query_quad(rows: Rows, r: u32, quad: u32) -> vec4<f32> {
    let place = place_of(rows, r);
    var x = vec4<f32>();
    if place.there {
        let at = (rows.first_token + place.token - im.q_first) * im.q_token + place.head * im.q_head;
        for (var i = 0u; i < 4u; i++) {
            if 4u * quad + i < plan.head_dim {
                x[i] = q(at + 4u * quad + i);
            }
        }
    }
    return x;
}
