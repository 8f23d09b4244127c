// What happens to a row before it is quantised: smoothing, and columns set aside. A row's source gives `open_row`, and
// `four_values` of columns: the same bits whenever it is asked.

fn smoothed(y: f32, column: u32) -> f32 {
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

fn four_prepared(place: Place, source: Source, columns: vec4<u32>) -> vec4<f32> {
    var y = four_values(place, source, columns);
    if HAS_FACTORS || HAS_OUTLIERS {
        for (var i = 0u; i < 4u; i++) {
            y[i] = smoothed(y[i], columns[i]);
            if HAS_OUTLIERS && is_aside(columns[i]) {
                y[i] = 0.0f;
            }
        }
    }
    return y;
}

// How far values reach below and above 0, as the bits of both magnitudes, which are in their order: subnormal numbers count,
// whatever the device does with them, and what is not finite is beyond all others.
fn widened(range: vec2<u32>, y: vec4<f32>) -> vec2<u32> {
    let bits = bitcast<vec4<u32>>(y);
    let sizes = bits & vec4(0x7fffffffu);
    let negative = bits > vec4(0x7fffffffu);
    let below = select(vec4<u32>(), sizes, negative);
    let above = select(sizes, vec4<u32>(), negative);
    let ends = max(vec4(below.xy, above.xy), vec4(below.zw, above.zw));
    return max(range, max(ends.xz, ends.yw));
}

// The range of columns `start..end` of a row, of those that fall to one of so many lanes.
fn range_of(place: Place, source: Source, start: u32, end: u32, lane: u32, lanes: u32) -> vec2<u32> {
    var range = vec2<u32>();
    for (var column = start + lane; column < end; column += 4u * lanes) {
        // One that is read twice changes nothing.
        let y = four_prepared(place, source, four_columns(column, lanes, end - 1u));
        range = widened(range, y);
    }
    return range;
}
