// Rows as they lie in memory.

struct Source {
    start: u32,
}

fn open_row(place: Place, lane: u32) -> Source {
    return Source(place.outer * im.x_outer + place.inner * im.x_inner);
}

fn four_values(place: Place, source: Source, columns: vec4<u32>) -> vec4<f32> {
    let at = source.start + columns;
    return vec4(x(at.x), x(at.y), x(at.z), x(at.w));
}

// Where a scale that is given lies: one serves all rows.
fn given_at(source: Source) -> u32 {
    return 0u;
}
