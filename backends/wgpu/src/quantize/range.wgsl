// The range of all rows: each workgroup's of those that fall to it, for `rows` to join. There is room for 256; what no
// workgroup writes is nothing.

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let number = linear_group(group, groups);
    let count = groups.x * groups.y;
    var range = vec2<u32>();
    for (var turn = number; turn * (256u / ROW_LANES) < im.rows; turn += count) {
        let place = place_of(turn, lane);
        let source = open_row(place, lane);
        if place.there {
            range = max(range, range_of(place, source, 0u, im.columns, place.lane, ROW_LANES));
        }
    }
    let all = team_max(lane, 256u, range);
    if lane == 0u {
        set_ranges(2u * number, all.x);
        set_ranges(2u * number + 1u, all.y);
    }
    if number == 0u && lane >= count {
        set_ranges(2u * lane, 0u);
        set_ranges(2u * lane + 1u, 0u);
    }
}
