// One workgroup a row: the target's log-probability, the highest, and all.

// Where a row has weights: its greatest logit, and the logarithm of the sum of the weights.
struct Scale {
    weighs: bool,
    greatest: f32,
    log_sum: f32,
}

fn log_prob(own: Scale, x: f32) -> f32 {
    if !own.weighs {
        return not_a_number();
    }
    if !is_finite(x) {
        return x;
    }
    return x - own.greatest - own.log_sum;
}

fn weight(place: vec2<u32>) -> vec2<u32> {
    return wide_of(weight_of(place.x), im.bits);
}

fn logit(row: u32, id: u32) -> f32 {
    return bitcast<f32>(logits(row * im.row_stride + id));
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = linear_group(group, groups);
    if row >= im.rows {
        return;
    }
    let first = first_of_ids(lane, row, 0u, im.vocabulary);
    weigh_from(first.x, 1.0f, 1.0f);
    var own = Scale(has_weights(first.x), 0.0f, 0.0f);
    var mine = Sum(vec2(0u, 0u), 0u);
    if own.weighs {
        for (var id = lane; id < im.vocabulary; id += 1024u) {
            let places = places_of(row, id, im.vocabulary);
            let low = wide_sum(weight(places[0]), weight(places[1]));
            let high = wide_sum(weight(places[2]), weight(places[3]));
            mine.weight = wide_sum(mine.weight, wide_sum(low, high));
        }
        own.greatest = greatest;
    }
    own.log_sum = logarithm(wide_float(total(lane, mine).weight) * im.unit);
    if lane == 0u {
        let id = targets(row);
        var y = not_a_number();
        if id >= 0i && u32(id) < im.vocabulary {
            y = log_prob(own, logit(row, u32(id)));
        }
        set_out(row, y);
    }
    if HAS_ALL {
        for (var id = lane; id < im.vocabulary; id += 256u) {
            set_all(row * im.all_stride + id, log_prob(own, logit(row, id)));
        }
    }
    // The highest logits, which are told as log-probabilities.
    for (var place = lane; place < im.highest; place += 256u) {
        let at = row * im.top_stride + place;
        set_top(at, log_prob(own, top(at)));
    }
}
