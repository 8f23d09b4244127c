// The columns that a row's expert keeps in float: one invocation each. One that is no column keeps nothing, and is 0.

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = linear_group(group, groups) * 256u + lane;
    let row = index / im.kept_columns;
    if row >= im.rows {
        return;
    }
    let which = index % im.kept_columns;
    let column = columns(expert_of(row) * im.kept_columns + which);
    var y = 0.0f;
    if column >= 0 && u32(column) < im.width {
        y = x(row * im.x_stride + u32(column));
    }
    set_kept(row * im.kept_stride + which, y);
}
