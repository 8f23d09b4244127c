// Integers whose scales change along K. Sums of a step, within which none does, are exact; each becomes a term in F32:
//
//     term = Σ x (q - z) · scale, + Σ x · minimum, · the activations' scale of the group
//
// Terms of a segment are added in ascending order, and segments are. Every product goes into a multiply-add that is
// written as one, so that no compiler rounds it otherwise in one kernel than in the other.

alias Total = f32;
alias Totals = vec4<f32>;

fn step_ends(q: u32) -> bool {
    return (q + 1u) % min(im.weight_group, im.x_group) == 0u || q + 1u == im.quads;
}

fn folded(
    chain: vec4<f32>, sums: Sums, x_sums: vec4<i32>, scales: vec4<f32>, offsets: vec4<u32>, x_scales: vec4<f32>
) -> vec4<f32> {
    var exact = sums;
    // Codes of 4 bits had theirs taken off before.
    if OFFSET == 1u && X_SUMS {
        exact -= bitcast<vec4<i32>>(offsets) * x_sums;
    }
    if OFFSET == 2u {
        let term = fma(vec4<f32>(x_sums), bitcast<vec4<f32>>(offsets), vec4<f32>(exact) * scales);
        return fma(term, x_scales, chain);
    }
    return fma(vec4<f32>(exact) * scales, x_scales, chain);
}

// The activations' scale of a group of columns; 1 where a row has one.
fn x_group_scale(row: u32, q: u32) -> f32 {
    if !X_GROUPS {
        return 1.0f;
    }
    let last = (im.k - 1u) / (16u * im.x_group);
    return x_scales(row * im.scales_stride + min(q / im.x_group, last));
}

fn segment(sums: Sums, chain: vec4<f32>) -> Totals {
    return chain;
}

fn scaled(total: Total, x_sum: i32, row: u32, start: u32, channel: u32) -> vec2<f32> {
    if X_GROUPS {
        return vec2(total, 1.0f);
    }
    return vec2(total, row_scale(row));
}
