// Integer weights times floats: dequantised on their way, w = (q - zero) · scale, + minimum. A pair of quads is eight
// values, of one group.

// Four bytes.
fn signed_bytes(word: u32) -> vec4<i32> {
    // Each to the top of its word, and down with its sign.
    return bitcast<vec4<i32>>(vec4(word << 24u, word << 16u, word << 8u, word)) >> vec4(24u);
}

fn dequantized(q: vec4<i32>, zero: i32, scale: f32, offset: u32) -> Quad {
    if OFFSET == 2u {
        return fma(Quad(q), Quad(scale), Quad(bitcast<f32>(offset)));
    }
    return Quad(q - zero) * scale;
}

fn weights(start: u32, channel: u32, q: u32) -> Pair {
    let group = weight_group(q);
    let scale = scale_of(start, group, channel);
    var zero = select(0i, 8i, INT4 && OFFSET == 0u);
    var offset = 0u;
    if OFFSET != 0u {
        offset = offset_of(start, group, channel);
        if OFFSET == 1u {
            zero = bitcast<i32>(offset);
        }
    }
    // Of a unit of INT4, quads 0 to 3 are the low halves of its words, 4 to 7 the high ones.
    let unit = w(start + PANEL * (q / select(4u, 8u, INT4)) + channel);
    var words = select(unit.xy, unit.zw, (q & 2u) != 0u);
    if INT4 {
        words = (words >> vec2(q & 4u)) & vec2(0x0f0f0f0fu);
    }
    return Pair(
        dequantized(signed_bytes(words.x), zero, scale, offset),
        dequantized(signed_bytes(words.y), zero, scale, offset)
    );
}
