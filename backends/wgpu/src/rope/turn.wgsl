// Pairs that turn: elements `i` and `i + pairs` of a head, or INTERLEAVED `2i` and `2i + 1`.

// No compiler may fuse a product with the sum it goes into.
fn rounded(x: f32) -> f32 {
    return alone(x, im.none);
}

// The two elements of a pair.
fn elements(pair: u32) -> vec2<u32> {
    return select(vec2(pair, pair + im.pairs), vec2(2u * pair, 2u * pair + 1u), INTERLEAVED);
}

// The cosine and the sine of a pair of a token.
fn angle(token: u32, pair: u32) -> vec2<f32> {
    let at = token * 2u * im.pairs + pair;
    return vec2(cos_sin(at), cos_sin(at + im.pairs));
}

fn turned(a: f32, b: f32, by: vec2<f32>) -> vec2<f32> {
    return vec2(rounded(a * by.x) - rounded(b * by.y), rounded(a * by.y) + rounded(b * by.x));
}

// A head of `x` in place, by a workgroup of 64.
fn turn_head(token: u32, head: u32, lane: u32) {
    let start = token * im.x_token + head * im.x_head;
    for (var pair = lane; pair < im.pairs; pair += 64u) {
        let at = start + elements(pair);
        let by = angle(token, pair) * vec2(1.0f, im.direction);
        let y = turned(x(at.x), x(at.y), by);
        set_x(at.x, y.x);
        set_x(at.y, y.y);
    }
}
