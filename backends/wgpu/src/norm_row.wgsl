// Normed rows. SUM_TYPE is what a sum is stored as: 0 in F32, 1 in F16, 2 in BF16.

struct Source {
    // A power of two that the row is taken times.
    by: f32,
    mean: f32,
    factor: f32,
}

// Squares of a row's elements may leave F32, or vanish beside an eps of next to nothing: so moments are taken of the row
// times each of these, and those used that can be. No compiler may know them: it would square them first. 0xffffffff rows
// there are not.
fn powers() -> vec3<f32> {
    return select(vec3(1.0f, 0x1p-100f, 0x1p+90f), vec3(1.0f), im.rows == 0xffffffffu);
}

// A number above 0 times 2^n, by its exponent; the smallest and largest where F32 has none that small or large.
fn times_power(x: f32, n: i32) -> f32 {
    let bits = bitcast<u32>(x);
    let exponent = i32(bits >> 23u) + n;
    if bits < 0x800000u || exponent < 1 {
        return 0.0f;
    }
    return bitcast<f32>((bits & 0x7fffffu) | (u32(min(exponent, 254)) << 23u));
}

// What is normalised: the sum with a residual as it is stored, where one comes before.
fn input(place: Place, column: u32) -> f32 {
    let y = x(place.outer * im.x_outer + place.inner * im.x_inner + column);
    if !HAS_SUM {
        return y;
    }
    let total = y + residual(place.outer * im.residual_outer + place.inner * im.residual_inner + column);
    switch SUM_TYPE {
        case 1u: {
            return f16_decode(f16_encode(total));
        }
        case 2u: {
            return bitcast<f32>(bf16_encode(total) << 16u);
        }
        default: {
            return total;
        }
    }
}

// Four columns' input, 0 beyond the row.
fn four_inputs(place: Place, column: u32) -> vec4<f32> {
    let columns = four_columns(column, ROW_LANES, im.columns - 1u);
    let y = vec4(
        input(place, columns.x),
        input(place, columns.y),
        input(place, columns.z),
        input(place, columns.w),
    );
    return select(vec4<f32>(), y, inside(column));
}

fn inside(column: u32) -> vec4<bool> {
    return vec4(column) + ROW_LANES * vec4(0u, 1u, 2u, 3u) < vec4(im.columns);
}

fn store_sums(place: Place, column: u32, y: vec4<f32>) {
    let start = place.outer * im.sum_outer + place.inner * im.sum_inner;
    for (var i = 0u; i < 4u; i++) {
        let at = column + i * ROW_LANES;
        if at < im.columns {
            set_sum(start + at, y[i]);
        }
    }
}

fn squared(sums: vec3<f32>, y: f32, by: vec3<f32>, mean: vec3<f32>, there: bool) -> vec3<f32> {
    let deviation = select(vec3<f32>(), y * by - mean, there);
    return fma(deviation, deviation, sums);
}

fn divide_all(a: vec3<f32>, b: f32) -> vec3<f32> {
    return vec3(divide(a.x, b), divide(a.y, b), divide(a.z, b));
}

// 1 / √x within 1 ULP or so, where x is not subnormal.
fn reciprocal_root(x: f32) -> f32 {
    if x == 0.0f {
        return infinity();
    }
    if !is_finite(x) {
        return select(0.0f, x, is_nan(x));
    }
    let y = inverseSqrt(x);
    return fma(fma(-x * y, y, 1.0f), 0.5f * y, y);
}

fn open_row(place: Place, lane: u32) -> Source {
    let count = f32(im.columns);
    let by = powers();
    var mean = vec3<f32>();
    if LAYER {
        var sums = vec3<f32>();
        for (var column = place.lane; column < im.columns; column += 4u * ROW_LANES) {
            let y = four_inputs(place, column);
            sums += y.x * by;
            sums += y.y * by;
            sums += y.z * by;
            sums += y.w * by;
        }
        mean = divide_all(team_sum(lane, ROW_LANES, vec4(sums, 0.0f)).xyz, count);
    }
    var squares = vec3<f32>();
    for (var column = place.lane; column < im.columns; column += 4u * ROW_LANES) {
        let y = four_inputs(place, column);
        let there = inside(column);
        squares = squared(squares, y.x, by, mean, there.x);
        squares = squared(squares, y.y, by, mean, there.y);
        squares = squared(squares, y.z, by, mean, there.z);
        squares = squared(squares, y.w, by, mean, there.w);
        if HAS_SUM && place.there {
            store_sums(place, column, y);
        }
    }
    let variance = divide_all(team_sum(lane, ROW_LANES, vec4(squares, 0.0f)).xyz, count);
    let square = variance + vec3(im.eps, times_power(im.eps, -200), times_power(im.eps, 180));
    if !is_finite(square.x) {
        return Source(by.y, mean.y, reciprocal_root(square.y));
    }
    if square.x < 0x1p-100f {
        return Source(by.z, mean.z, reciprocal_root(square.z));
    }
    return Source(1.0f, mean.x, reciprocal_root(square.x));
}

// Products are added by explicit fma: a compiler may do so or not, from one kernel to the next.
fn value(place: Place, source: Source, column: u32) -> f32 {
    var y = input(place, column) * source.by;
    if LAYER {
        y -= source.mean;
    }
    y *= source.factor;
    var by = 1.0f;
    if HAS_WEIGHT {
        by = weight(place.inner * im.weight_head + column);
        // Adding 0 would change the sign of -0.
        if im.weight_offset != 0.0f {
            by += im.weight_offset;
        }
    }
    if HAS_BIAS {
        y = fma(y, by, bias(place.inner * im.bias_head + column));
    } else if !AFTER {
        return y * by;
    }
    if AFTER {
        let more = residual(place.outer * im.residual_outer + place.inner * im.residual_inner + column);
        y = select(fma(y, by, more), y + more, HAS_BIAS);
    }
    return y;
}

// Where a scale that is given lies: one serves all rows.
fn given_at(source: Source) -> u32 {
    return 0u;
}
