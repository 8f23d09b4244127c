// What happens to a product, in the contract's order: scales, outliers, bias, activation or gate, soft-cap, residual,
// rounding. What is added to a product is added by a multiply-add that is written as one: left to themselves, compilers
// might fuse in one kernel and not in the other.

fn biased(factors: vec2<f32>, outliers: f32, weight_row: u32) -> f32 {
    let at = member * im.results * PANELS + weight_row;
    if HAS_X_OUTLIERS {
        return fma(factors.x, factors.y, outliers) + bias(at);
    }
    return fma(factors.x, factors.y, bias(at));
}

fn finish(
    row: u32, result: u32, channel: u32, starts: vec2<u32>, totals: vec2<Total>, x_sum: i32, outliers: vec2<f32>
) {
    let y = biased(scaled(totals.x, x_sum, row, starts.x, channel), outliers.x, result);
    var factors = vec2(activate(im.function, y), 1.0f);
    if PANELS == 2u {
        let up = scaled(totals.y, x_sum, row, starts.y, channel);
        factors.y = biased(up, outliers.y, im.results + result);
    }
    if im.soft_cap > 0.0f {
        factors = vec2(im.soft_cap, hyperbolic_tangent(divide(factors.x * factors.y, im.soft_cap)));
    }
    let value = fma(factors.x, factors.y, residual(row * im.apart + result));
    let at = row * im.out_stride + result;
    if INTEGERS {
        set_out(at, out_value(requantized(value)));
    } else {
        set_out(at, out_value(value));
    }
}

// saturate(round_ties_even(value / scale) + zero point), NaN as 0.
fn requantized(value: f32) -> i32 {
    let steps = divide(value, im.output_scale);
    let least = 64i * i32(im.of_u8 & 2u) - 128i;
    var q = 0i;
    if !is_nan(steps) {
        q = i32(clamp(round(steps), -1024.0f, 1024.0f));
    }
    return clamp(q + im.output_zero, least, least + 255i);
}
