// What a row knows of the positions read so far: their greatest score, the sum of exp(score - greatest) and the values
// weighted by the same. Parts are joined from left to right by these functions wherever it happens, so the place does not
// show in the bits.

const LOWEST: f32 = -0x1.fffffep+127f;

// A row that has seen something has a sum above 0, or NaN.
fn is_empty(sum: f32) -> bool {
    return (bitcast<u32>(sum) & 0x7fffffffu) == 0u;
}

struct Joined {
    max: f32,
    sum: f32,
    // What the values so far are multiplied with, and those of the part.
    before: f32,
    part: f32,
    // Only one of the two has seen something.
    only_before: bool,
    only_part: bool,
}

fn joined(before_max: f32, before_sum: f32, part_max: f32, part_sum: f32) -> Joined {
    if is_empty(part_sum) {
        return Joined(before_max, before_sum, 1.0f, 0.0f, true, false);
    }
    if is_empty(before_sum) {
        return Joined(part_max, part_sum, 0.0f, 1.0f, false, true);
    }
    let top = max(before_max, part_max);
    let before = exponential(before_max - top);
    let part = exponential(part_max - top);
    return Joined(top, fma(part_sum, part, before_sum * before), before, part, false, false);
}

fn joined_values(now: Joined, before: vec4<f32>, part: vec4<f32>) -> vec4<f32> {
    if now.only_before {
        return before;
    }
    if now.only_part {
        return part;
    }
    return fma(part, vec4(now.part), before * now.before);
}

// How a row ends: its values times `factor` divided by `sum`, and the logarithm of the denominator.
struct Ending {
    factor: f32,
    sum: f32,
    log: f32,
}

// A sink is a last position whose value is 0.
fn ending(most: f32, sum: f32, has_sink: bool, sink: f32) -> Ending {
    if is_empty(sum) {
        return Ending(0.0f, 1.0f, select(-infinity(), sink, has_sink));
    }
    if !has_sink {
        return Ending(1.0f, sum, most + logarithm(sum));
    }
    let top = max(most, sink);
    let factor = exponential(most - top);
    let total = fma(sum, factor, exponential(sink - top));
    return Ending(factor, total, top + logarithm(total));
}

fn normalised(last: Ending, value: f32) -> f32 {
    return divide(value * last.factor, last.sum);
}
