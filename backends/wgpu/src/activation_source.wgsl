// Activated rows as a source of what is quantised.

struct Source {
    start: u32,
}

fn open_row(place: Place, lane: u32) -> Source {
    return Source(place.outer * im.x_stride);
}

fn four_values(place: Place, source: Source, columns: vec4<u32>) -> vec4<f32> {
    var y: vec4<f32>;
    // Not four times in the text: the functions are long.
    for (var i = 0u; i < 4u; i++) {
        y[i] = activated(source.start, columns[i]);
    }
    return y;
}

// Where a scale that is given lies: one serves all rows.
fn given_at(source: Source) -> u32 {
    return 0u;
}
