// y[t] *= sigmoid(x[t] · gate): a workgroup a token. The sum's order is that of lanes, whatever the number of tokens.

const LANES: u32 = 256u;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let token = linear_group(group, groups);
    if token >= im.tokens {
        return;
    }
    var sum = 0.0f;
    for (var column = lane; column < im.columns; column += 256u) {
        sum = fma(x(token * im.x_stride + column), gate(column), sum);
    }
    let share = divide(1.0f, 1.0f + exponential(-sum_of_lanes(lane, sum)));
    for (var column = lane; column < im.columns; column += 256u) {
        let at = token * im.y_stride + column;
        set_y(at, y(at) * share);
    }
}
