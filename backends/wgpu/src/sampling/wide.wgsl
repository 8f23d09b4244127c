// Whole numbers of 64 bits, the low word first. Sums of weights are kept in them: they are exact, so that no order of
// addition changes a bit.

fn wide_sum(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let low = a.x + b.x;
    return vec2(low, a.y + b.y + u32(low < a.x));
}

fn wide_difference(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return vec2(a.x - b.x, a.y - b.y - u32(a.x < b.x));
}

fn wide_less(a: vec2<u32>, b: vec2<u32>) -> bool {
    return a.y < b.y || (a.y == b.y && a.x < b.x);
}

fn wide_product(a: u32, b: u32) -> vec2<u32> {
    let low = (a & 0xffffu) * (b & 0xffffu);
    let middle = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
    let other = (a & 0xffffu) * (b >> 16u) + (middle & 0xffffu);
    return vec2((other << 16u) | (low & 0xffffu), (a >> 16u) * (b >> 16u) + (middle >> 16u) + (other >> 16u));
}

// The whole part of a · fraction / 2^32.
fn wide_part(a: vec2<u32>, fraction: u32) -> vec2<u32> {
    return wide_sum(wide_product(a.y, fraction), vec2(wide_product(a.x, fraction).y, 0u));
}

// The whole part of x · 2^bits, of an x from 0 to 1 and at most 44 bits.
fn wide_of(x: f32, bits: u32) -> vec2<u32> {
    let word = bitcast<u32>(x);
    let exponent = word >> 23u;
    if exponent == 0u {
        return vec2(0u, 0u);
    }
    let mantissa = (word & 0x7fffffu) | 0x800000u;
    // x is mantissa · 2^(exponent - 150).
    let shift = i32(exponent) - 150 + i32(bits);
    if shift <= 0 {
        return vec2(select(0u, mantissa >> u32(-shift), shift > -24), 0u);
    }
    let left = u32(shift);
    return vec2(mantissa << left, mantissa >> (32u - left));
}

fn wide_float(a: vec2<u32>) -> f32 {
    return fma(f32(a.y), 0x1p32f, f32(a.x));
}
