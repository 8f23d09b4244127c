// Activated rows as a source of what is quantised.

struct Source {
    start: u32,
}

fn open_row(place: Place, lane: u32) -> Source {
    return Source(place.outer * im.x_stride);
}

fn value(place: Place, source: Source, column: u32) -> f32 {
    return activated(source.start, column);
}

// Where a scale that is given lies: one serves all rows.
fn given_at(source: Source) -> u32 {
    return 0u;
}
