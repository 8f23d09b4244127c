// Activations of 8 bits at any place.

// The 16 from `i` on.
fn x_bytes(i: u32) -> vec4<u32> {
    let at = x_at(i);
    let word = at / 4u;
    let shift = 8u * (at % 4u);
    let quad = vec4(x_words[word], x_words[word + 1u], x_words[word + 2u], x_words[word + 3u]);
    if shift == 0u {
        return quad;
    }
    let next = vec4(quad.yzw, x_words[word + 4u]);
    return (quad >> vec4(shift)) | (next << vec4(32u - shift));
}
