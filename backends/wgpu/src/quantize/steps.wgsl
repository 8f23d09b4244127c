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

fn lifted(x: f32, lift: f32) -> f32 {
    let bits = bitcast<u32>(x);
    if lift > 1.0f && (bits & 0x7f800000u) == 0u {
        let size = f32(bits & 0x7fffffu) * 0x1p-85f;
        return bitcast<f32>(bitcast<u32>(size) | (bits & 0x80000000u));
    }
    return x * lift;
}

// The bits' 255th part, rounded as IEEE does, times `lift`.
fn part_of_255(bits: u32, lift: f32) -> f32 {
    if lift > 1.0f && bits < 0x047f0000u {
        // A subnormal quotient. The dividend is a whole number of 2^-149, below 2^31; ties there are not.
        let exponent = max(bits >> 23u, 1u);
        let mantissa = (bits & 0x7fffffu) | select(0u, 0x800000u, bits >= 0x800000u);
        return f32(((mantissa << (exponent - 1u)) + 127u) / 255u) * 0x1p-85f;
    }
    return divide(lifted(bitcast<f32>(bits), lift), 255.0f);
}

// Of a range as `widened` makes it.
fn steps_of(range: vec2<u32>) -> Steps {
    let largest = max(range.x, range.y);
    if largest >= 0x7f800000u {
        return Steps(not_a_number(), 0, 0.0f, 1.0f, false);
    }
    let lift = lift_for(largest);
    var step: f32;
    if ASYMMETRIC {
        step = part_of_255(range.y, lift) + part_of_255(range.x, lift);
    } else {
        step = divide(lifted(bitcast<f32>(largest), lift), 127.0f);
    }
    var down = 1.0f;
    if lift > 1.0f {
        step = max(step, 0x1p-62f);
        down = 0x1p-64f;
    }
    if ASYMMETRIC {
        let zero = round(LEAST + divide(lifted(bitcast<f32>(range.x), lift), step));
        return Steps(step * down, i32(clamp(zero, LEAST, MOST)), step, lift, true);
    }
    return Steps(step * down, 0, divide(1.0f, step), lift, true);
}

// Of a scale that is given.
fn steps_with(scale: f32, zero: i32) -> Steps {
    let lift = lift_for(bitcast<u32>(scale));
    let step = lifted(scale, lift);
    if ASYMMETRIC {
        return Steps(scale, zero, step, lift, true);
    }
    return Steps(scale, 0, divide(1.0f, step), lift, true);
}

// A value's integer, as a byte.
fn byte_of(x: f32, steps: Steps) -> u32 {
    if !steps.told {
        return 0u;
    }
    let y = lifted(x, steps.lift);
    var quotient: f32;
    if ASYMMETRIC {
        quotient = divide(y, steps.by);
    } else {
        quotient = y * steps.by;
    }
    if is_nan(quotient) {
        quotient = 0.0f;
    } else if !is_finite(quotient) {
        quotient = select(0x1p+100f, -0x1p+100f, bitcast<u32>(quotient) > 0x7fffffffu);
    }
    return bitcast<u32>(i32(clamp(round(quotient) + f32(steps.zero), LEAST, MOST))) & 0xffu;
}
