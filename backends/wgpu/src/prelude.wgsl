// What every kernel may use. Half-precision numbers are taken apart by their bits: no adapter needs a feature for it, and
// none flushes their subnormals.

fn f16_decode(bits: u32) -> f32 {
    let sign = (bits & 0x8000u) << 16u;
    let rest = bits & 0x7fffu;
    if rest < 0x400u {
        return bitcast<f32>(bitcast<u32>(f32(rest) * 0x1p-24f) | sign);
    }
    let exponent = select(112u << 23u, 224u << 23u, rest >= 0x7c00u);
    return bitcast<f32>(((rest << 13u) + exponent) | sign);
}

fn f16_encode(value: f32) -> u32 {
    let bits = bitcast<u32>(value);
    let sign = (bits >> 16u) & 0x8000u;
    let rest = bits & 0x7fffffffu;
    if rest > 0x7f800000u {
        return sign | 0x7e00u | ((rest >> 13u) & 0x3ffu);
    }
    if rest >= 0x477ff000u {
        return sign | 0x7c00u;
    }
    if rest >= 0x38800000u {
        return sign | ((rest - 0x38000000u + 0xfffu + ((rest >> 13u) & 1u)) >> 13u);
    }
    if rest < 0x33000000u {
        return sign;
    }
    let mantissa = (rest & 0x7fffffu) | 0x800000u;
    let shift = 126u - (rest >> 23u);
    let half = (1u << (shift - 1u)) - 1u;
    return sign | ((mantissa + half + ((mantissa >> shift) & 1u)) >> shift);
}

fn bf16_encode(value: f32) -> u32 {
    let bits = bitcast<u32>(value);
    if (bits & 0x7fffffffu) > 0x7f800000u {
        return (bits >> 16u) | 0x40u;
    }
    return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
}

// WGSL lets a compiler assume that there is neither NaN nor infinity: both are told by their bits.
fn is_nan(value: f32) -> bool {
    return (bitcast<u32>(value) & 0x7fffffffu) > 0x7f800000u;
}

fn is_finite(value: f32) -> bool {
    return (bitcast<u32>(value) & 0x7f800000u) != 0x7f800000u;
}

// These bits, unknown to the compiler: constants of them are refused. No shader passes a mask other than 0 for `none`.
fn infinity() -> f32 {
    return from_bits(0x7f800000u);
}

fn not_a_number() -> f32 {
    return from_bits(0x7fc00000u);
}

fn from_bits(bits: u32) -> f32 {
    var word = bits;
    return bitcast<f32>(word);
}

// A number as it is, for what is rounded before it goes on: a compiler that does not know that `none` is 0 cannot join the
// product that made it with a sum.
fn alone(x: f32, none: u32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) ^ none);
}

// Which workgroup this is, of a grid that `spread` made.
fn linear_group(group: vec3<u32>, groups: vec3<u32>) -> u32 {
    return group.y * groups.x + group.x;
}

// 2^n of a whole n from -126 to 127.
fn power_of_two(n: i32) -> f32 {
    return bitcast<f32>(u32(n + 127) << 23u);
}

// n times the upper bits of ln 2, exactly; the rest of ln 2 is -2.12194440e-4. By integers: drivers join two products of one
// number into one, and lose what was cut.
fn high_ln2(n: i32) -> f32 {
    return f32(355 * n) * 0x1p-9f;
}

// e^x within 2 ULP, 0 below F32's normal range. The argument is cut to n ln 2 + r (Cody and Waite 1980), e^r is its
// Taylor polynomial on |r| <= ln 2 / 2, whose remainder is below 2^-27.
fn exponential(x: f32) -> f32 {
    if is_nan(x) {
        return x;
    }
    if x > 88.72283f {
        return infinity();
    }
    if x < -87.33654f {
        return 0.0f;
    }
    let n = round(x * 1.44269504f);
    let r = fma(n, 2.12194440e-4f, x - high_ln2(i32(n)));
    var p = fma(r, 1.0f / 5040.0f, 1.0f / 720.0f);
    p = fma(r, p, 1.0f / 120.0f);
    p = fma(r, p, 1.0f / 24.0f);
    p = fma(r, p, 1.0f / 6.0f);
    p = fma(r, p, 0.5f);
    p = fma(r * r, p, r) + 1.0f;
    // In two steps: 2^128 is not a number of F32.
    let half = i32(n) / 2;
    return p * power_of_two(half) * power_of_two(i32(n) - half);
}

// ln x within 2.5 ULP; of subnormal numbers -infinity, as of 0. With x = 2^n m and m within √2 of 1, by the series of
// artanh: ln m = 2 (s + s³/3 + s⁵/5 + ...), s = (m - 1) / (m + 1).
fn logarithm(x: f32) -> f32 {
    if is_nan(x) || x < 0.0f {
        return not_a_number();
    }
    if x < 0x1p-126f {
        return -infinity();
    }
    if !is_finite(x) {
        return x;
    }
    let bits = bitcast<u32>(x);
    let n = bitcast<i32>(bits - 0x3f3504f3u) >> 23u;
    let m = bitcast<f32>(bits - (bitcast<u32>(n) << 23u));
    let s = (m - 1.0f) / (m + 1.0f);
    let t = s * s;
    var p = fma(t, 0.111111111f, 0.142857143f);
    p = fma(t, p, 0.2f);
    p = fma(t, p, 0.333333333f);
    let rest = fma(2.0f * s * t, p, f32(n) * -2.12194440e-4f);
    return high_ln2(n) + fma(2.0f, s, rest);
}

// tanh within 3 ULP: near 0 by its series' rational form x (1 + P(x²)), elsewhere 1 - 2 / (e^2|x| + 1).
fn hyperbolic_tangent(x: f32) -> f32 {
    if is_nan(x) {
        return x;
    }
    let a = abs(x);
    if a < 0.55f {
        let t = x * x;
        // Lambert's continued fraction, cut after 11: below 2^-26 here.
        let c = t / (9.0f + t / 11.0f);
        let b = t / (5.0f + t / (7.0f + c));
        return x - x * t / (3.0f + b + t);
    }
    if a > 9.1f {
        return select(-1.0f, 1.0f, x > 0.0f);
    }
    let y = 1.0f - 2.0f / (exponential(2.0f * a) + 1.0f);
    return select(-y, y, x > 0.0f);
}

// a / b as IEEE rounds it, where neither is subnormal nor the quotient: WGSL's own division may be 2.5 ULP off. What is left
// over is computed in integers: `fma` need not be fused, and drivers join products that were parted to be exact.
fn divide(a: f32, b: f32) -> f32 {
    let q = a / b;
    let bits = vec3(bitcast<u32>(a), bitcast<u32>(b), bitcast<u32>(q));
    let exponents = (bits >> vec3(23u)) & vec3(0xffu);
    if any(exponents == vec3(0u)) || any(exponents == vec3(0xffu)) {
        return q;
    }
    let rest = bits & vec3(0x7fffffffu);
    let nearest = nearer(nearer(nearer(rest.z, rest.xy), rest.xy), rest.xy);
    return bitcast<f32>((bits.z & 0x80000000u) | nearest);
}

// The quotient q of a.x and a.y, all as the bits of normal numbers above 0, or the number next to it if that is nearer. The
// remainder, in units of the last places of q and of the divisor, is far below 2^31: 32 bits have it exactly.
fn nearer(q: u32, a: vec2<u32>) -> u32 {
    let mantissas = (vec3(a, q) & vec3(0x7fffffu)) | vec3(0x800000u);
    let shift = ((a.x >> 23u) - (a.y >> 23u) - (q >> 23u) + 150u) & 31u;
    let rest = bitcast<i32>((mantissas.x << shift) - mantissas.y * mantissas.z);
    let divisor = bitcast<i32>(mantissas.y);
    // Below a power of two, numbers are twice as dense.
    let dense = select(2, 4, mantissas.z == 0x800000u);
    return q + u32(2 * rest > divisor) - u32(dense * rest < -divisor);
}

// The four halves of two words; widening is exact.
fn four_halves(words: vec2<u32>, bf16: bool) -> vec4<f32> {
    if bf16 {
        return bitcast<vec4<f32>>(vec4(words.x << 16u, words.x & 0xffff0000u, words.y << 16u, words.y & 0xffff0000u));
    }
    return vec4(
        f16_decode(words.x & 0xffffu), f16_decode(words.x >> 16u), f16_decode(words.y & 0xffffu), f16_decode(words.y >> 16u)
    );
}

// Two numbers as the halves of a word, each rounded to nearest even.
fn half_word(pair: vec2<f32>, bf16: bool) -> u32 {
    if bf16 {
        return bf16_encode(pair.x) | (bf16_encode(pair.y) << 16u);
    }
    return f16_encode(pair.x) | (f16_encode(pair.y) << 16u);
}

// The scale of whole numbers up to `steps` for numbers of which the greatest magnitude has these bits; NaN where that is
// not finite.
fn scale_of_greatest(most: u32, steps: f32) -> f32 {
    if most >= 0x7f800000u {
        return not_a_number();
    }
    return max(divide(bitcast<f32>(most), steps), 0x1p-126f);
}
