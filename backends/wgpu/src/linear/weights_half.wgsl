// F16 and BF16 weights: widening is exact.

fn widened(bits: vec2<u32>) -> Quad {
    if BF16 {
        return bitcast<Quad>(vec4(bits.x << 16u, bits.x & 0xffff0000u, bits.y << 16u, bits.y & 0xffff0000u));
    }
    return Quad(
        f16_decode(bits.x & 0xffffu), f16_decode(bits.x >> 16u), f16_decode(bits.y & 0xffffu), f16_decode(bits.y >> 16u)
    );
}

fn weights(start: u32, channel: u32, q: u32) -> Pair {
    let unit = w(start + PANEL * (q / 2u) + channel);
    return Pair(widened(unit.xy), widened(unit.zw));
}
