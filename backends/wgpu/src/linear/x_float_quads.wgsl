// Float activations whose rows begin at multiples of 16 bytes.

// Quad `q` of the row that begins at `start`. What lies behind a row is never multiplied, not even with 0.
fn x_quad(start: u32, q: u32) -> Quad {
    var quad: Quad;
    if X_BITS == 32u {
        quad = bitcast<Quad>(x(start / 4u + q));
    } else {
        let unit = x(start / 8u + q / 2u);
        quad = four_halves(select(unit.xy, unit.zw, (q & 1u) != 0u), X_BF16);
    }
    if 4u * q + 4u <= im.k {
        return quad;
    }
    let left = i32(im.k) - i32(4u * q);
    return select(Quad(), quad, vec4(0i, 1i, 2i, 3i) < vec4(left));
}
