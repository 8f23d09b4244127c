// One workgroup a row: the token that its draw takes.

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = linear_group(group, groups);
    if row >= im.rows {
        return;
    }
    let first = first_of_row(lane, row);
    var id = first.y;
    if DRAWN {
        if is_drawn(row, first) {
            id = draw(lane, row, keep(lane, row, first));
        }
    }
    if lane == 0u {
        set_ids(row, min(id, im.vocabulary - 1u));
    }
}
