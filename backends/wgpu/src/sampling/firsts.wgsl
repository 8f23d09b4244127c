// One workgroup a part of a row: the first of its candidates.

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = linear_group(group, groups);
    let row = index / im.parts;
    if row >= im.rows {
        return;
    }
    let start = index % im.parts * im.part;
    let first = first_of_ids(lane, row, start, min(start + im.part, im.vocabulary));
    if lane == 0u {
        set_firsts(2u * index, first.x);
        set_firsts(2u * index + 1u, first.y);
        if start == 0u {
            // The row's list is empty.
            set_lists(row * im.list_stride, 0u);
        }
    }
}
