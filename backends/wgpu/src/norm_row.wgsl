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

// What is normalised of four columns: the sum with a residual as it is stored, where one comes before.
fn four_at(place: Place, columns: vec4<u32>) -> vec4<f32> {
    let at = place.outer * im.x_outer + place.inner * im.x_inner + columns;
    var y = vec4(x(at.x), x(at.y), x(at.z), x(at.w));
    if HAS_SUM {
        y += residuals(place, columns);
        if SUM_TYPE != 0u {
            for (var i = 0u; i < 4u; i++) {
                y[i] = stored(y[i]);
            }
        }
    }
    return y;
}

fn stored(total: f32) -> f32 {
    if SUM_TYPE == 1u {
        return f16_decode(f16_encode(total));
    }
    return bitcast<f32>(bf16_encode(total) << 16u);
}

fn residuals(place: Place, columns: vec4<u32>) -> vec4<f32> {
    let at = place.outer * im.residual_outer + place.inner * im.residual_inner + columns;
    return vec4(residual(at.x), residual(at.y), residual(at.z), residual(at.w));
}

// Which of a column and those a team further each are there.
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

// Each of four sums, and the square of how far a number times `by` is from the mean, where it is there.
fn add_squares(sums: vec4<f32>, y: vec4<f32>, there: vec4<bool>, by: f32, mean: f32) -> vec4<f32> {
    let deviations = select(vec4<f32>(), y * by - mean, there);
    return fma(deviations, deviations, sums);
}

// The means over the row of what each of a team has summed, in four sums each.
fn means(lane: u32, a: vec4<f32>, b: vec4<f32>, c: vec4<f32>) -> vec3<f32> {
    let halves = vec4(a.xy + a.zw, b.xy + b.zw);
    let last = c.xy + c.zw;
    let sums = vec4(halves.xz + halves.yw, last.x + last.y, 0.0f);
    var mean = team_sum(lane, ROW_LANES, sums).xyz;
    for (var i = 0u; i < 3u; i++) {
        mean[i] = divide(mean[i], f32(im.columns));
    }
    return mean;
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
    let by = powers();
    var mean = vec3<f32>();
    if LAYER {
        var a = vec4<f32>();
        var b = vec4<f32>();
        var c = vec4<f32>();
        for (var column = place.lane; column < im.columns; column += 4u * ROW_LANES) {
            let read = four_at(place, four_columns(column, ROW_LANES, im.columns - 1u));
            let y = select(vec4<f32>(), read, inside(column));
            a += y;
            b += y * by.y;
            c += y * by.z;
        }
        mean = means(lane, a, b, c);
    }
    var a = vec4<f32>();
    var b = vec4<f32>();
    var c = vec4<f32>();
    for (var column = place.lane; column < im.columns; column += 4u * ROW_LANES) {
        let y = four_at(place, four_columns(column, ROW_LANES, im.columns - 1u));
        let there = inside(column);
        a = add_squares(a, y, there, 1.0f, mean.x);
        b = add_squares(b, y, there, by.y, mean.y);
        c = add_squares(c, y, there, by.z, mean.z);
        if HAS_SUM && place.there {
            store_sums(place, column, y);
        }
    }
    let eps = vec3(im.eps, times_power(im.eps, -200), times_power(im.eps, 180));
    let square = means(lane, a, b, c) + eps;
    var source = Source(1.0f, mean.x, square.x);
    if !is_finite(square.x) {
        source = Source(by.y, mean.y, square.y);
    } else if square.x < 0x1p-100f {
        source = Source(by.z, mean.z, square.z);
    }
    source.factor = reciprocal_root(source.factor);
    return source;
}

// Products are added by explicit fma: a compiler may do so or not, from one kernel to the next.
fn four_values(place: Place, source: Source, columns: vec4<u32>) -> vec4<f32> {
    var y = four_at(place, columns) * source.by;
    if LAYER {
        y -= source.mean;
    }
    y *= source.factor;
    var by = vec4(1.0f);
    if HAS_WEIGHT {
        let at = place.inner * im.weight_head + columns;
        by = vec4(weight(at.x), weight(at.y), weight(at.z), weight(at.w));
        // Adding 0 would change the sign of -0.
        if im.weight_offset != 0.0f {
            by += im.weight_offset;
        }
    }
    if HAS_BIAS {
        let at = place.inner * im.bias_head + columns;
        y = fma(y, by, vec4(bias(at.x), bias(at.y), bias(at.z), bias(at.w)));
        if AFTER {
            y += residuals(place, columns);
        }
    } else if AFTER {
        y = fma(y, by, residuals(place, columns));
    } else {
        y *= by;
    }
    return y;
}

// Where a scale that is given lies: one serves all rows.
fn given_at(source: Source) -> u32 {
    return 0u;
}
