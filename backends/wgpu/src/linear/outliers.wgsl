// Columns kept in float beside integers: one chain of multiply-adds in the order of the list. Weights lie as F32 weights
// do, four columns a unit.

fn outliers_x(row: u32, unit: u32) -> vec4<f32> {
    var values = vec4<f32>();
    let at = row * im.outliers_stride + 4u * unit;
    let left = im.outliers - 4u * unit;
    values.x = x_outliers(at);
    if left > 1u {
        values.y = x_outliers(at + 1u);
    }
    if left > 2u {
        values.z = x_outliers(at + 2u);
    }
    if left > 3u {
        values.w = x_outliers(at + 3u);
    }
    return values;
}

fn outliers_w(start: u32, channel: u32, unit: u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(w(start + outliers_at() + PANEL * unit + channel));
}

fn add_outliers(sum: f32, a: vec4<f32>, b: vec4<f32>) -> f32 {
    return fma(a.w, b.w, fma(a.z, b.z, fma(a.y, b.y, fma(a.x, b.x, sum))));
}
