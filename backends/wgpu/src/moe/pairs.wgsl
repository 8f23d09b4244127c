// Two neighbouring elements of half precision, which one word holds.
fn store(token: u32, pair: u32) {
    let both = vec2(combined(token, 2u * pair), combined(token, 2u * pair + 1u));
    set_out(token * im.out_stride + pair, half_word(both, BF16));
}
