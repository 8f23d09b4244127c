// One scale for all rows of each expert, a workgroup an expert.

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let expert = linear_group(group, groups);
    if expert >= im.experts {
        return;
    }
    let last = min(u32(max(offsets(expert + 1u), 0)), im.rows);
    let team = lane / ROW_LANES;
    var range = vec2<u32>();
    for (var row = u32(max(offsets(expert), 0)) + team; row < last; row += 256u / ROW_LANES) {
        let place = Place(row, 0u, lane % ROW_LANES, true);
        let source = Source(row * im.x_stride, expert);
        range = max(range, range_of(place, source, 0u, im.columns, place.lane, ROW_LANES));
    }
    let steps = steps_of(team_max(lane, 256u, range));
    if lane == 0u {
        set_scales(expert, steps.scale);
        set_zeros(expert, steps.zero);
    }
}
