// What becomes of a part's scores: weights, 32 invocations a row.

// Invocations that weigh a row's scores.
const ROW_LANES: u32 = 32u;

// Turns a part's scores into weights, and joins what becomes of them to what the rows know.
fn weigh_part(lane: u32) {
    let r = lane / ROW_LANES;
    let first = lane % ROW_LANES;
    let there = r < plan.rows;
    var most = LOWEST;
    if there {
        for (var j = first; j < plan.part; j += ROW_LANES) {
            let bits = scores[r * plan.part + j];
            if bits != UNSEEN {
                most = max(most, bitcast<f32>(bits));
            }
        }
    }
    lanes[lane] = bitcast<u32>(most);
    workgroupBarrier();
    for (var i = 0u; i < ROW_LANES; i++) {
        most = max(most, bitcast<f32>(lanes[r * ROW_LANES + i]));
    }
    workgroupBarrier();
    var sum = 0.0f;
    if there {
        for (var j = first; j < plan.part; j += ROW_LANES) {
            let bits = scores[r * plan.part + j];
            if bits != UNSEEN {
                let weight = exponential(bitcast<f32>(bits) - most);
                scores[r * plan.part + j] = bitcast<u32>(weight);
                sum += weight;
            }
        }
    }
    lanes[lane] = bitcast<u32>(sum);
    workgroupBarrier();
    if there && first == 0u {
        sum = 0.0f;
        for (var i = 0u; i < ROW_LANES; i++) {
            sum += bitcast<f32>(lanes[r * ROW_LANES + i]);
        }
        let now = joined(state_max[r], state_sum[r], most, sum);
        state_max[r] = now.max;
        state_sum[r] = now.sum;
        joins[r] = now;
    }
    workgroupBarrier();
}

// Turns weights into 8 bits, the values' scales multiplied in.
fn weigh_in_8_bits(lane: u32) {
    let r = lane / ROW_LANES;
    let first = lane % ROW_LANES;
    let there = r < plan.rows;
    // Weights are not negative: their bits are in order, and what is not finite is above all that is.
    var most = 0u;
    if there {
        for (var j = first; j < plan.part; j += ROW_LANES) {
            let bits = scores[r * plan.part + j];
            if bits != UNSEEN {
                let weight = bitcast<f32>(bits) * scales(im.value_scales + cache_rows[j]);
                scores[r * plan.part + j] = bitcast<u32>(weight) & 0x7fffffffu;
                most = max(most, bitcast<u32>(weight) & 0x7fffffffu);
            }
        }
    }
    lanes[lane] = most;
    workgroupBarrier();
    if there {
        for (var i = 0u; i < ROW_LANES; i++) {
            most = max(most, lanes[r * ROW_LANES + i]);
        }
        let finite = most < 0x7f800000u;
        let scale = scale_of_greatest(most, 255.0f);
        let inverse = divide(1.0f, scale);
        for (var j = first; j < plan.part; j += ROW_LANES) {
            let bits = scores[r * plan.part + j];
            if bits != UNSEEN {
                let steps = clamp(round(bitcast<f32>(bits) * inverse), 0.0f, 255.0f);
                scores[r * plan.part + j] = select(0u, bitcast<u32>(steps), finite);
            }
        }
        if first == 0u {
            part_scale[r] = scale;
        }
    }
    workgroupBarrier();
}
