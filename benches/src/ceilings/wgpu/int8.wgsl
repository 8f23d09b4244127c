// Four signed bytes.
alias Word = u32;
alias Sum = i32;

fn outer(x: u32, y: vec4<u32>, sums: vec4<i32>) -> vec4<i32> {
    return sums + vec4(
        dot4I8Packed(x, y.x),
        dot4I8Packed(x, y.y),
        dot4I8Packed(x, y.z),
        dot4I8Packed(x, y.w),
    );
}

fn inner(x: vec4<u32>, y: vec4<u32>, sum: i32) -> i32 {
    return sum
        + dot4I8Packed(x.x, y.x)
        + dot4I8Packed(x.y, y.y)
        + dot4I8Packed(x.z, y.z)
        + dot4I8Packed(x.w, y.w);
}
