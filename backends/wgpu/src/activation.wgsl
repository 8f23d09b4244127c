// Activated rows as floats, an invocation an element.

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
    set_out(row * im.out_stride + column, activated(row * im.x_stride, column));
}
