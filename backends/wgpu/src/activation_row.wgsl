// Activated rows: `activation::constants` has what they are compiled with.

fn activated(start: u32, column: u32) -> f32 {
    if !GATED {
        return activate(FUNCTION, x(start + column));
    }
    let pair = select(vec2(column, im.columns + column), vec2(2u * column, 2u * column + 1u), INTERLEAVED);
    let g = x(start + pair.x);
    let u = x(start + pair.y);
    if CLAMPED {
        return clamped_swiglu(g, u, im.alpha, im.limit);
    }
    return activate(FUNCTION, g) * u;
}
