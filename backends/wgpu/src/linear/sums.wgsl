// The ending of bare sums.

fn finish(
    row: u32, result: u32, channel: u32, starts: vec2<u32>, totals: vec2<Total>, x_sum: i32, outliers: vec2<f32>
) {
    set_out(row * im.out_stride + result, exact(totals.x, x_sum, row, starts.x, channel));
}
