alias Word = f32;
alias Sum = f32;

fn outer(x: f32, y: vec4<f32>, sums: vec4<f32>) -> vec4<f32> {
    return fma(vec4(x), y, sums);
}

fn inner(x: vec4<f32>, y: vec4<f32>, sum: f32) -> f32 {
    return sum + dot(x, y);
}
