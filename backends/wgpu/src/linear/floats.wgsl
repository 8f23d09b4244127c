// Float activations: a quad is four values of K. A segment of K is one chain of multiply-adds, and segments are added in
// ascending order, in both kernels.

alias Quad = vec4<f32>;
alias Sum = f32;
alias Sums = vec4<f32>;
alias Total = f32;
alias Totals = vec4<f32>;

const STEPS: bool = false;

struct Pair {
    first: Quad,
    second: Quad,
}

// Quad `q` of the row that begins at `start`. What lies behind a row is never multiplied, not even with 0.
fn x_quad(start: u32, q: u32) -> Quad {
    let k = 4u * q;
    let at = start + k;
    if k + 4u <= im.k {
        return Quad(x(at), x(at + 1u), x(at + 2u), x(at + 3u));
    }
    var quad = Quad();
    if k < im.k {
        quad.x = x(at);
    }
    if k + 1u < im.k {
        quad.y = x(at + 1u);
    }
    if k + 2u < im.k {
        quad.z = x(at + 2u);
    }
    return quad;
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
