// What happens to a row before it is quantised: smoothing, and columns set aside. A row's source gives `open_row` and
// `value`, the same bits whenever it is asked.

fn smoothed(place: Place, source: Source, column: u32) -> f32 {
    let y = value(place, source, column);
    if HAS_FACTORS {
        return divide(y, factors(column));
    }
    return y;
}

// Whether a column is among those set aside, which are ascending.
fn is_aside(column: u32) -> bool {
    var low = 0u;
    var high = im.aside;
    while low < high {
        let middle = (low + high) / 2u;
        if outliers(middle) < i32(column) {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    return low < im.aside && outliers(low) == i32(column);
}

fn prepared(place: Place, source: Source, column: u32) -> f32 {
    if HAS_OUTLIERS && is_aside(column) {
        return 0.0f;
    }
    return smoothed(place, source, column);
}

// How far values reach below and above 0, as the bits of both magnitudes, which are in their order: subnormal numbers count,
// whatever the device does with them, and what is not finite is beyond all others.
fn widened(range: vec2<u32>, y: f32) -> vec2<u32> {
    let bits = bitcast<u32>(y);
    let size = bits & 0x7fffffffu;
    return max(range, select(vec2(0u, size), vec2(size, 0u), bits > 0x7fffffffu));
}

// The range of columns `start..end` of a row, of those that fall to one of so many lanes.
fn range_of(place: Place, source: Source, start: u32, end: u32, lane: u32, lanes: u32) -> vec2<u32> {
    var range = vec2<u32>();
    for (var column = start + lane; column < end; column += 4u * lanes) {
        // One that is read twice changes nothing.
        let columns = four_columns(column, lanes, end - 1u);
        let a = prepared(place, source, columns.x);
        let b = prepared(place, source, columns.y);
        let c = prepared(place, source, columns.z);
        let d = prepared(place, source, columns.w);
        range = widened(widened(widened(widened(range, a), b), c), d);
    }
    return range;
}
