// F16 and BF16 weights.

fn weights(start: u32, channel: u32, q: u32) -> Pair {
    let unit = w(start + PANEL * (q / 2u) + channel);
    return Pair(widened(unit.xy, BF16), widened(unit.zw, BF16));
}
