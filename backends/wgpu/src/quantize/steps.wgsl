// A scale and a zero point, and integers by them, to the bit as IEEE has it. Devices may flush subnormal numbers: where they
// matter, all is computed 2^64 times as large.

struct Steps {
    scale: f32,
    zero: i32,
    // What values are divided by with a zero point, and multiplied by without, both of `lift` times as large.
    by: f32,
    lift: f32,
    // False where a value is not finite: all is 0 then.
    told: bool,
}

const LIFT: f32 = 0x1p+64f;
// The least integer; there are 255 or, where symmetric, 254 above it.
const LEAST: f32 = select(select(-128.0f, 0.0f, UNSIGNED), -127.0f, !ASYMMETRIC);
const MOST: f32 = select(127.0f, 255.0f, UNSIGNED);

fn lift_for(bits: u32) -> f32 {
    // Below 2^-40.
    return select(1.0f, LIFT, (bits & 0x7fffffffu) < 0x2b800000u);
}

fn lifted(x: vec4<f32>, lift: f32) -> vec4<f32> {
    if lift == 1.0f {
        return x;
    }
    let bits = bitcast<vec4<u32>>(x);
    let sizes = bitcast<vec4<u32>>(vec4<f32>(bits & vec4(0x7fffffu)) * 0x1p-85f);
    let subnormal = bitcast<vec4<f32>>(sizes | (bits & vec4(0x80000000u)));
    return select(x * lift, subnormal, (bits & vec4(0x7f800000u)) == vec4(0u));
}

// A magnitude, given as its bits, over 127, or over 255 where there are zero points, as IEEE rounds it; times `lift`.
fn step_for(bits: u32, lift: f32) -> f32 {
    if ASYMMETRIC && lift > 1.0f && bits < 0x047f0000u {
        // A subnormal quotient. The dividend is a whole number of 2^-149, below 2^31; ties there are not.
        let exponent = max(bits >> 23u, 1u);
        let mantissa = (bits & 0x7fffffu) | select(0u, 0x800000u, bits >= 0x800000u);
        return f32(((mantissa << (exponent - 1u)) + 127u) / 255u) * 0x1p-85f;
    }
    return divide(lifted(vec4(bitcast<f32>(bits)), lift).x, select(127.0f, 255.0f, ASYMMETRIC));
}

// Of a range as `widened` makes it.
fn steps_of(range: vec2<u32>) -> Steps {
    let largest = max(range.x, range.y);
    if largest >= 0x7f800000u {
        return Steps(not_a_number(), 0, 0.0f, 1.0f, false);
    }
    let lift = lift_for(largest);
    let ends = select(vec2(largest, 0u), range, ASYMMETRIC);
    var step = 0.0f;
    for (var i = 0u; i < 2u; i++) {
        step += step_for(ends[1u - i], lift);
    }
    var scale = step;
    if lift > 1.0f {
        step = max(step, 0x1p-62f);
        scale = step * 0x1p-64f;
    }
    return steps_with(scale, step, lift, range.x);
}

// Of a scale, as it is and times `lift`. The zero point is that of a range that reaches so far below 0.
fn steps_with(scale: f32, step: f32, lift: f32, below: u32) -> Steps {
    let dividend = select(1.0f, lifted(vec4(bitcast<f32>(below)), lift).x, ASYMMETRIC);
    let quotient = divide(dividend, step);
    if ASYMMETRIC {
        return Steps(scale, i32(clamp(round(LEAST + quotient), LEAST, MOST)), step, lift, true);
    }
    return Steps(scale, 0, quotient, lift, true);
}

// Of a scale and a zero point that are given.
fn given_steps(scale: f32, zero: i32) -> Steps {
    let lift = lift_for(bitcast<u32>(scale));
    var steps = steps_with(scale, lifted(vec4(scale), lift).x, lift, 0u);
    steps.zero = zero;
    return steps;
}

// Four values' integers, as the bytes of a word.
fn word_of(x: vec4<f32>, steps: Steps) -> u32 {
    if !steps.told {
        return 0u;
    }
    var y = lifted(x, steps.lift);
    if ASYMMETRIC {
        for (var i = 0u; i < 4u; i++) {
            y[i] = divide(y[i], steps.by);
        }
    } else {
        y *= steps.by;
    }
    // What cannot be told is the zero point, and what is infinite saturates.
    let bits = bitcast<vec4<u32>>(y);
    let sizes = bits & vec4(0x7fffffffu);
    let far = select(vec4(0x1p+100f), vec4(-0x1p+100f), bits > vec4(0x7fffffffu));
    y = select(select(y, far, sizes >= vec4(0x7f800000u)), vec4<f32>(), sizes > vec4(0x7f800000u));
    let integers = vec4<i32>(clamp(round(y) + f32(steps.zero), vec4(LEAST), vec4(MOST)));
    let bytes = (bitcast<vec4<u32>>(integers) & vec4(0xffu)) << vec4(0u, 8u, 16u, 24u);
    return bytes.x | bytes.y | bytes.z | bytes.w;
}
