// y[t] *= sigmoid(x[t] · gate): a workgroup a token. The sum's order is that of lanes, whatever the number of tokens.

var<workgroup> sums: array<f32, 256>;

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
    sums[lane] = sum;
    workgroupBarrier();
    for (var step = 128u; step > 0u; step /= 2u) {
        if lane < step {
            sums[lane] += sums[lane + step];
        }
        workgroupBarrier();
    }
    let share = divide(1.0f, 1.0f + exponential(-sums[0]));
    for (var column = lane; column < im.columns; column += 256u) {
        let at = token * im.y_stride + column;
        set_y(at, y(at) * share);
    }
}
