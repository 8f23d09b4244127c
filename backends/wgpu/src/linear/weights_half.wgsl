// F16 and BF16 weights.

fn weights(start: u32, channel: u32, q: u32) -> Pair {
    let unit = w(start + PANEL * (q / 2u) + channel);
    return Pair(four_halves(unit.xy, BF16), four_halves(unit.zw, BF16));
}
