// A workgroup makes of the parts of one row, or of the one state of a row that was read whole, what the call is to give:
// the result, or the state.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = linear_group(group, groups);
    let head = index % im.heads;
    let in_tile = index / im.heads % im.tile_tokens;
    if index / im.heads / im.tile_tokens >= im.tiles {
        return;
    }
    let at = im.tiles_at + 12u * (index / im.heads / im.tile_tokens);
    let tokens = u32(tables(at + 1u));
    if in_tile >= tokens {
        return;
    }
    let token = u32(tables(at)) + in_tile;
    let slot = u32(tables(at + 8u)) + in_tile;
    let parts = u32(tables(at + 9u));
    // What was read whole began with the state that came in.
    let begins = HAS_IN_MAX && tables(at + 10u) == 0;

    for (var quad = lane; 4u * quad < im.value_dim; quad += 64u) {
        var most = LOWEST;
        var sum = 0.0f;
        var values = vec4<f32>();
        if begins {
            most = in_max(token * im.in_max_token + head);
            sum = in_sum(token * im.in_sum_token + head);
            for (var i = 0u; i < 4u; i++) {
                if 4u * quad + i < im.value_dim {
                    values[i] = in_values(token * im.in_token + head * im.in_head + 4u * quad + i);
                }
            }
        }
        for (var part = 0u; part < parts; part++) {
            let record = ((slot + part * tokens) * im.heads + head) * (im.value_dim + 2u);
            var part_values = vec4<f32>();
            for (var i = 0u; i < 4u; i++) {
                if 4u * quad + i < im.value_dim {
                    part_values[i] = scratch(record + 4u * quad + i);
                }
            }
            let now = joined(most, sum, scratch(record + im.value_dim), scratch(record + im.value_dim + 1u));
            most = now.max;
            sum = now.sum;
            values = joined_values(now, values, part_values);
        }
        if HAS_OUT_MAX {
            if quad == 0u {
                set_out_max(token * im.out_max_token + head, select(most, -infinity(), is_empty(sum)));
                set_out_sum(token * im.out_sum_token + head, sum);
            }
            for (var i = 0u; i < 4u; i++) {
                if 4u * quad + i < im.value_dim {
                    set_out(token * im.out_token + head * im.out_head + 4u * quad + i, values[i]);
                }
            }
            continue;
        }
        let last = ending(most, sum, HAS_SINKS, sinks(head));
        for (var i = 0u; i < 4u; i++) {
            if 4u * quad + i < im.value_dim {
                set_out(token * im.out_token + head * im.out_head + 4u * quad + i, normalised(last, values[i]));
            }
        }
        if HAS_LOG_SUM_EXP && quad == 0u {
            set_log_sum_exp(token * im.log_token + head, last.log);
        }
    }
}
