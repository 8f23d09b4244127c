// One invocation an element of the output, or two where they fill a word.

// A product that is rounded before anything is added to it: the compiler does not know that `none` is 0.
fn product(a: f32, b: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(a * b) ^ bitcast<u32>(im.none));
}

fn combined(token: u32, column: u32) -> f32 {
    var sum = 0.0f;
    for (var slot = 0u; slot < im.top_k; slot++) {
        let place = places(token * im.places_stride + slot);
        if place < 0 || u32(place) >= im.rows {
            continue;
        }
        var y = f32(rows(u32(place) * im.rows_stride + column));
        if HAS_SCALES {
            y = product(y, scales(u32(place)));
        }
        if HAS_WEIGHTS {
            y = product(y, weights(token * im.weights_stride + slot));
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
