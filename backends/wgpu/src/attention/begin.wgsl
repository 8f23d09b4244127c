// A workgroup puts the state that came in for a row where the workgroup that reads the row whole takes it up.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = linear_group(group, groups);
    let head = index % im.heads;
    let in_tile = index / im.heads % im.tile_tokens;
    if index / im.heads / im.tile_tokens >= im.tiles {
        return;
    }
    let at = im.tiles_at + 12u * (index / im.heads / im.tile_tokens);
    if in_tile >= u32(tables(at + 1u)) || tables(at + 10u) == 0 {
        return;
    }
    let token = u32(tables(at)) + in_tile;
    let record = ((u32(tables(at + 8u)) + in_tile) * im.heads + head) * (im.value_dim + 2u);
    if lane == 0u {
        set_scratch(record + im.value_dim, in_max(token * im.in_max_token + head));
        set_scratch(record + im.value_dim + 1u, in_sum(token * im.in_sum_token + head));
    }
    for (var d = lane; d < im.value_dim; d += 64u) {
        set_scratch(record + d, in_values(token * im.in_token + head * im.in_head + d));
    }
}
