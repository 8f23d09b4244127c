// F32 weights as they are.

fn weights(start: u32, channel: u32, q: u32) -> Pair {
    let at = start + PANEL * q + channel;
    return Pair(bitcast<Quad>(w(at)), bitcast<Quad>(w(at + PANEL)));
}
