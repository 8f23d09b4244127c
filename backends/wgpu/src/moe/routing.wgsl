// One workgroup a row. Experts rank by keys: whole numbers in the order of the contract, so ties and NaN need no care of
// their own. Lane l has the experts l, l + 64, ...

const LANES: u32 = 64u;
// Of an expert that takes no part, or no longer.
const GONE: u32 = 0u;
const NAN_KEY: u32 = 1u;
const LEAST_KEY: u32 = 0x007fffffu;
const INFINITE_KEY: u32 = 0xff800000u;
// What keeps a sum of zeros from being divided by.
const LEAST_SUM: f32 = 1e-20f;

const SOFTMAX: u32 = 0u;
const SOFTMAX_OF_CHOSEN: u32 = 1u;
const BEST: u32 = 0u;

var<workgroup> scores: array<f32, MAX_EXPERTS>;
// Of experts; in the end the weights' bits, by slot.
var<workgroup> keys: array<u32, MAX_EXPERTS>;
// Keys of groups; then the chosen, by slot.
var<workgroup> list: array<u32, MAX_EXPERTS>;
var<workgroup> best_keys: array<u32, LANES>;
var<workgroup> best_ids: array<u32, LANES>;

// The greater number has the greater key; 0 and -0 have one.
fn key_of(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    if is_nan(x) {
        return NAN_KEY;
    }
    if bits == 0x80000000u {
        return bits;
    }
    return select(bits ^ 0x80000000u, ~bits, bits >= 0x80000000u);
}

fn value_of(key: u32) -> f32 {
    if key == NAN_KEY {
        return not_a_number();
    }
    return bitcast<f32>(select(~key, key ^ 0x80000000u, key >= 0x80000000u));
}

// The greatest key of all lanes, and the lowest id that has it.
fn best(lane: u32, key: u32, id: u32) -> vec2<u32> {
    best_keys[lane] = key;
    best_ids[lane] = id;
    workgroupBarrier();
    for (var step = LANES / 2u; step > 0u; step /= 2u) {
        if lane < step {
            let key = best_keys[lane + step];
            let id = best_ids[lane + step];
            if key > best_keys[lane] || (key == best_keys[lane] && id < best_ids[lane]) {
                best_keys[lane] = key;
                best_ids[lane] = id;
            }
        }
        workgroupBarrier();
    }
    let found = vec2(best_keys[0], best_ids[0]);
    workgroupBarrier();
    return found;
}

// What a softmax's greatest number is found by: NaN is above all of them.
fn softmax_key(x: f32) -> u32 {
    return select(key_of(x), 0xffffffffu, is_nan(x));
}

// Whether a softmax is NaN in every place: one number is, or is infinite, or all are minus infinity.
fn is_lost(greatest: u32) -> bool {
    return greatest >= INFINITE_KEY || greatest == LEAST_KEY;
}

// The scores of a row that begins at `start`.
fn score(lane: u32, start: u32) {
    if im.scoring != SOFTMAX {
        for (var expert = lane; expert < im.experts; expert += LANES) {
            let x = logits(start + expert);
            var s = x;
            if im.scoring != SOFTMAX_OF_CHOSEN {
                s = divide(1.0f, 1.0f + exponential(-x));
            }
            scores[expert] = s;
        }
        return;
    }
    var greatest = 0u;
    for (var expert = lane; expert < im.experts; expert += LANES) {
        greatest = max(greatest, softmax_key(logits(start + expert)));
    }
    greatest = best(lane, greatest, 0u).x;
    let most = value_of(greatest);
    var sum = 0.0f;
    for (var expert = lane; expert < im.experts; expert += LANES) {
        let power = exponential(logits(start + expert) - most);
        scores[expert] = power;
        sum += power;
    }
    sum = sum_of_lanes(lane, sum);
    for (var expert = lane; expert < im.experts; expert += LANES) {
        scores[expert] = select(divide(scores[expert], sum), not_a_number(), is_lost(greatest));
    }
}

// What the sum of a group's best is made of.
fn summand(expert: u32) -> f32 {
    if HAS_BIAS {
        return value_of(keys[expert]);
    }
    return scores[expert];
}

fn group_key(group: u32) -> u32 {
    let first = group * im.group_size;
    var one = first;
    var two = first;
    for (var expert = first + 1u; expert < first + im.group_size; expert++) {
        if keys[expert] > keys[one] {
            two = one;
            one = expert;
        } else if two == one || keys[expert] > keys[two] {
            two = expert;
        }
    }
    if im.group_score == BEST {
        return keys[one];
    }
    if two == one {
        return key_of(summand(one));
    }
    return key_of(summand(one) + summand(two));
}

// Takes out the experts of all groups but the best.
fn keep_groups(lane: u32) {
    for (var group = lane; group < im.groups; group += LANES) {
        list[group] = group_key(group);
    }
    workgroupBarrier();
    for (var group = lane; group < im.groups; group += LANES) {
        let key = list[group];
        var better = 0u;
        for (var other = 0u; other < im.groups; other++) {
            better += u32(list[other] > key || (list[other] == key && other < group));
        }
        if better >= im.kept {
            for (var member = 0u; member < im.group_size; member++) {
                keys[group * im.group_size + member] = GONE;
            }
        }
    }
    workgroupBarrier();
}

// The best of a lane's experts: key and id.
fn best_of_lane(lane: u32) -> vec2<u32> {
    var found = vec2(GONE, lane);
    for (var expert = lane; expert < im.experts; expert += LANES) {
        if keys[expert] > found.x {
            found = vec2(keys[expert], expert);
        }
    }
    return found;
}

// Makes the list of the chosen, best first.
fn choose(lane: u32) {
    var mine = best_of_lane(lane);
    for (var slot = 0u; slot < im.top_k; slot++) {
        let chosen = best(lane, mine.x, mine.y).y;
        if chosen % LANES == lane {
            list[slot] = chosen;
            keys[chosen] = GONE;
            mine = best_of_lane(lane);
        }
    }
    workgroupBarrier();
}

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = linear_group(group, groups);
    if row >= im.rows {
        return;
    }
    let start = row * im.logits_stride;
    score(lane, start);
    for (var expert = lane; expert < im.experts; expert += LANES) {
        var rank = logits(start + expert);
        if HAS_BIAS {
            rank = scores[expert] + bias(expert);
        }
        keys[expert] = key_of(rank);
    }
    workgroupBarrier();
    if im.groups > 0u {
        keep_groups(lane);
    }
    choose(lane);

    // Every lane goes through all slots where the order of a sum is by slots.
    var greatest = 0u;
    var sum = 0.0f;
    if im.scoring == SOFTMAX_OF_CHOSEN {
        for (var slot = 0u; slot < im.top_k; slot++) {
            greatest = max(greatest, softmax_key(scores[list[slot]]));
        }
        for (var slot = 0u; slot < im.top_k; slot++) {
            sum += exponential(scores[list[slot]] - value_of(greatest));
        }
    }
    for (var slot = lane; slot < im.top_k; slot += LANES) {
        var weight = scores[list[slot]];
        if im.scoring == SOFTMAX_OF_CHOSEN {
            weight = divide(exponential(weight - value_of(greatest)), sum);
            weight = select(weight, not_a_number(), is_lost(greatest));
        }
        keys[slot] = bitcast<u32>(weight);
    }
    workgroupBarrier();
    var divisor = 0.0f;
    for (var slot = 0u; slot < im.top_k; slot++) {
        divisor += bitcast<f32>(keys[slot]);
    }
    divisor += LEAST_SUM;
    for (var slot = lane; slot < im.top_k; slot += LANES) {
        var weight = bitcast<f32>(keys[slot]);
        if im.renormalized != 0u {
            weight = divide(weight, divisor);
        }
        set_ids(row * im.ids_stride + slot, i32(list[slot]));
        set_weights(row * im.weights_stride + slot, weight * im.scale);
    }
}
