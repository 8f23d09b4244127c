// Integers whose scales do not change along K: all of it is one sum.

alias Total = i32;
alias Totals = vec4<i32>;

fn step_ends(q: u32) -> bool {
    return false;
}

fn folded(
    chain: vec4<f32>, sums: Sums, x_sums: vec4<i32>, scales: vec4<f32>, offsets: vec4<u32>, x_scales: vec4<f32>
) -> vec4<f32> {
    return chain;
}

fn x_group_scale(row: u32, q: u32) -> f32 {
    return 1.0f;
}

fn segment(sums: Sums, chain: vec4<f32>) -> Totals {
    return sums;
}

// Zero points taken off: Σ (x - zx) (q - zq) = Σ x q - zq Σ x - zx Σ (q - zq), modulo 2^32.
fn exact(total: Total, x_sum: i32, row: u32, start: u32, channel: u32) -> i32 {
    var sum = total;
    if OFFSET == 1u {
        sum -= bitcast<i32>(offset_of(start, 0u, channel)) * x_sum;
    }
    if HAS_X_ZEROS {
        let zero = x_zeros(row * im.scales_stride) - i32(128u * (im.of_u8 & 1u));
        let sums_at = im.scales_at + select(4u, 8u, OFFSET == 1u);
        sum -= zero * bitcast<i32>(channel_word(start + sums_at, channel));
    }
    return sum;
}

fn scaled(total: Total, x_sum: i32, row: u32, start: u32, channel: u32) -> vec2<f32> {
    return vec2(f32(exact(total, x_sum, row, start, channel)) * scale_of(start, 0u, channel), row_scale(row));
}
