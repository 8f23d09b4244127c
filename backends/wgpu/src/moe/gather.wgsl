// One invocation an element, or a word of elements: `moved` is one of the texts before this one.

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = linear_group(group, groups) * 256u + lane;
    let slot = index / im.columns;
    let column = index % im.columns;
    if slot >= im.slots {
        return;
    }
    let token = slot / im.top_k;
    let place = places(token * im.places_stride + slot % im.top_k);
    if place < 0 {
        return;
    }
    let weight = weights(token * im.weights_stride + slot % im.top_k);
    let row = u32(place);
    if column < im.width {
        set_rows(row * im.rows_stride + column, moved(x(token * im.x_stride + column), weight));
    }
    if column == 0u {
        let scale = scales(token);
        set_row_scales(row, select(scale, scale * weight, HAS_WEIGHTS));
    }
}
