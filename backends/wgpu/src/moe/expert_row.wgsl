// Rows of experts, sorted by expert, as a source of rows to be quantised: columns that their expert keeps in float are 0, and
// scales of all rows are an expert's.

struct Source {
    start: u32,
    expert: u32,
}

fn open_row(place: Place, lane: u32) -> Source {
    return Source(place.outer * im.x_stride, expert_of(place.outer));
}

// Whether a column is among those that an expert keeps, which are ascending.
fn is_kept(expert: u32, column: u32) -> bool {
    var low = expert * im.kept_columns;
    var high = low + im.kept_columns;
    let end = high;
    while low < high {
        let middle = (low + high) / 2u;
        if columns(middle) < i32(column) {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    return low < end && columns(low) == i32(column);
}

fn four_values(place: Place, source: Source, columns_read: vec4<u32>) -> vec4<f32> {
    let at = source.start + columns_read;
    var y = vec4(x(at.x), x(at.y), x(at.z), x(at.w));
    if HAS_COLUMNS {
        for (var i = 0u; i < 4u; i++) {
            if is_kept(source.expert, columns_read[i]) {
                y[i] = 0.0f;
            }
        }
    }
    return y;
}

// Where the scale of all rows lies, if that is given.
fn given_at(source: Source) -> u32 {
    return source.expert;
}
