// A workgroup a head.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = linear_group(group, groups);
    let token = index / im.heads;
    if token < im.tokens {
        turn_head(token, index % im.heads, lane);
    }
}
