// A workgroup merges up to three parts of one row into the state of those before them: a part is a state whose sum is 1.

// A log-sum-exp of minus infinity, told by its bits, is that of an empty part.
fn part_sum(log: f32) -> f32 {
    return select(1.0f, 0.0f, bitcast<u32>(log) == 0xff800000u);
}

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = linear_group(group, groups);
    if index >= im.tokens * im.heads {
        return;
    }
    let token = index / im.heads;
    let head = index % im.heads;
    let record = index * (im.value_dim + 2u);
    var before = LOWEST;
    var before_sum = 0.0f;
    if BEGINS {
        before = scratch(record + im.value_dim);
        before_sum = scratch(record + im.value_dim + 1u);
    }
    // Every invocation reads the state before one of them changes it.
    storageBarrier();
    for (var d = lane; d < im.value_dim; d += 64u) {
        var most = before;
        var sum = before_sum;
        var value = vec4<f32>();
        if BEGINS {
            value.x = scratch(record + d);
        }
        for (var i = 0u; i < PARTS; i++) {
            var log = 0.0f;
            var part = vec4<f32>();
            switch i {
                case 0u: {
                    log = a_log(token * im.a_log_token + head);
                    part.x = a(token * im.a_token + head * im.a_head + d);
                }
                case 1u: {
                    log = b_log(token * im.b_log_token + head);
                    part.x = b(token * im.b_token + head * im.b_head + d);
                }
                default: {
                    log = c_log(token * im.c_log_token + head);
                    part.x = c(token * im.c_token + head * im.c_head + d);
                }
            }
            let now = joined(most, sum, log, part_sum(log));
            most = now.max;
            sum = now.sum;
            value = joined_values(now, value, part);
        }
        if HAS_OUT {
            let last = ending(most, sum, false, 0.0f);
            set_out(token * im.out_token + head * im.out_head + d, normalised(last, value.x));
            if HAS_LOG_SUM_EXP && d == 0u {
                set_log_sum_exp(token * im.log_token + head, last.log);
            }
        } else {
            if d == 0u {
                set_scratch(record + im.value_dim, most);
                set_scratch(record + im.value_dim + 1u, sum);
            }
            set_scratch(record + d, value.x);
        }
    }
}
