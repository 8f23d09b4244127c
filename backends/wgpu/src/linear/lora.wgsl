// The ending of an adapter's second product: `out = round(out + round(scale · product))`, in the row that a sorted one comes
// from.

fn finish(
    row: u32, result: u32, channel: u32, starts: vec2<u32>, totals: vec2<Total>, x_sum: i32, outliers: vec2<f32>
) {
    let factors = scaled(totals.x, x_sum, row, starts.x, channel);
    let product = alone(factors.x * factors.y, im.none);
    let at = u32(order(im.order_at + row)) * im.out_stride + result;
    set_out(at, out_value(out(at) + alone(product * im.scale, im.none)));
}
