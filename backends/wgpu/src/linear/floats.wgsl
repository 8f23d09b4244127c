// Float activations: a quad is four values of K. A segment of K is one chain of multiply-adds, and segments are added in
// ascending order, in both kernels.

alias Quad = vec4<f32>;
alias Sum = f32;
alias Sums = vec4<f32>;
alias Total = f32;
alias Totals = vec4<f32>;

struct Pair {
    first: Quad,
    second: Quad,
}

fn add(sum: Sum, a: Quad, b: Quad) -> Sum {
    return fma(a.w, b.w, fma(a.z, b.z, fma(a.y, b.y, fma(a.x, b.x, sum))));
}

fn quad_sum(a: Quad) -> i32 {
    return 0i;
}

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

// What a segment adds.
fn segment(sums: Sums, chain: vec4<f32>) -> Totals {
    return sums;
}

// A result as two factors, whose product is not rounded yet.
fn scaled(total: Total, x_sum: i32, row: u32, start: u32, channel: u32) -> vec2<f32> {
    return vec2(total, 1.0f);
}
