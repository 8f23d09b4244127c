// Float activations at any place.

// Quad `q` of the row that begins at `start`. What lies behind a row is never multiplied, not even with 0.
fn x_quad(start: u32, q: u32) -> Quad {
    let k = 4u * q;
    let at = start + k;
    if k + 4u <= im.k {
        return Quad(x(at), x(at + 1u), x(at + 2u), x(at + 3u));
    }
    var quad = Quad();
    if k < im.k {
        quad.x = x(at);
    }
    if k + 1u < im.k {
        quad.y = x(at + 1u);
    }
    if k + 2u < im.k {
        quad.z = x(at + 2u);
    }
    return quad;
}
