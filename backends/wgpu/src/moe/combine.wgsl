// One invocation an element of the output, or two where they fill a word.

fn combined(token: u32, column: u32) -> f32 {
    var sum = 0.0f;
    for (var slot = 0u; slot < im.top_k; slot++) {
        let place = places(token * im.places_stride + slot);
        if place < 0 || u32(place) >= im.rows {
            continue;
        }
        var y = f32(rows(u32(place) * im.rows_stride + column));
        if HAS_SCALES {
            y = alone(y * scales(u32(place)), im.none);
        }
        if HAS_WEIGHTS {
            y = alone(y * weights(token * im.weights_stride + slot), im.none);
        }
        sum += y;
    }
    if HAS_FIRST {
        sum += first(token * im.first_stride + column);
    }
    if HAS_SECOND {
        sum += second(token * im.second_stride + column);
    }
    if HAS_THIRD {
        sum += third(token * im.third_stride + column);
    }
    return sum;
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = linear_group(group, groups) * 256u + lane;
    let token = index / im.columns;
    if token < im.tokens {
        store(token, index % im.columns);
    }
}
