// One workgroup a row: the distribution that a draw follows.

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
    let drawn = is_drawn(row, first);
    var kept: Kept;
    if drawn {
        kept = keep(lane, row, first);
    }
    let sum = wide_float(kept.sum) * im.unit;
    for (var id = lane; id < im.vocabulary; id += 256u) {
        var p = f32(id == first.y);
        if drawn {
            let place = place_of(row, id);
            p = 0.0f;
            if is_kept(kept, place) {
                p = divide(weight_of(place.x), sum);
            }
        }
        set_out(row * im.out_stride + id, p);
    }
}
