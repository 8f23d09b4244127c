// Codes of 4 bits times INT8: as bytes, zero points taken off.

// q - zero in each byte, both from 0 to 15: no byte borrows from the next.
fn less_zero(q: Quad, zero: u32) -> Quad {
    return ((q | Quad(0x80808080u)) - Quad(zero * 0x01010101u)) ^ Quad(0x80808080u);
}

// The zero point of a quad's group; symmetric codes are 8 more than what they stand for.
fn code_zero(start: u32, group: u32, channel: u32) -> u32 {
    if OFFSET == 0u {
        return 8u;
    }
    return offset_of(start, group, channel);
}

fn weights(start: u32, channel: u32, q: u32) -> Pair {
    let unit = w(start + PANEL * (q / 2u) + channel);
    let low = unit & Quad(0x0f0f0f0fu);
    let high = (unit >> Quad(4u)) & Quad(0x0f0f0f0fu);
    if OFFSET == 2u {
        return Pair(low, high);
    }
    return Pair(
        less_zero(low, code_zero(start, weight_group(q), channel)),
        less_zero(high, code_zero(start, weight_group(q + 1u), channel))
    );
}
