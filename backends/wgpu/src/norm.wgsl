// Normed rows as floats, a team a row.

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let place = place_of(linear_group(group, groups), lane);
    let source = open_row(place, lane);
    if !place.there {
        return;
    }
    let start = place.outer * im.out_outer + place.inner * im.out_inner;
    for (var column = place.lane; column < im.columns; column += 4u * ROW_LANES) {
        // All are read before any is written, which may be to the same memory for all that a compiler knows.
        let columns = four_columns(column, ROW_LANES, im.columns - 1u);
        let y = four_values(place, source, columns);
        for (var i = 0u; i < 4u; i++) {
            if column + i * ROW_LANES < im.columns {
                set_out(start + columns[i], y[i]);
            }
        }
    }
}
