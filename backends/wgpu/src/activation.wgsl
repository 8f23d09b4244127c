// One invocation an element of the output.

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = linear_group(group, groups) * 256u + lane;
    let row = index / im.columns;
    let column = index % im.columns;
    if row >= im.rows {
        return;
    }
    var y = 0.0f;
    if GATED {
        let pair = select(vec2(column, im.columns + column), vec2(2u * column, 2u * column + 1u), INTERLEAVED);
        let g = x(row * im.x_stride + pair.x);
        let u = x(row * im.x_stride + pair.y);
        if CLAMPED {
            y = clamped_swiglu(g, u, im.alpha, im.limit);
        } else {
            y = activate(FUNCTION, g) * u;
        }
    } else {
        y = activate(FUNCTION, x(row * im.x_stride + column));
    }
    set_out(row * im.out_stride + column, y);
}
