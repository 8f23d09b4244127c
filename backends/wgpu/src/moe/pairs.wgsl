// Two neighbouring elements of half precision, which one word holds.
fn store(token: u32, pair: u32) {
    let low = combined(token, 2u * pair);
    let high = combined(token, 2u * pair + 1u);
    var word = f16_encode(low) | (f16_encode(high) << 16u);
    if BF16 {
        word = bf16_encode(low) | (bf16_encode(high) << 16u);
    }
    set_out(token * im.out_stride + pair, word);
}
