// INT8 weights times INT8: as they are.

fn weights(start: u32, channel: u32, q: u32) -> Pair {
    let at = start + PANEL * q + channel;
    return Pair(w(at), w(at + PANEL));
}
