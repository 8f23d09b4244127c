// A workgroup a row: a token's key or value of a head. In a latent cache a key is `k` and then `v`.

fn element(kind: u32, token: u32, head: u32, d: u32) -> f32 {
    let of_k = select(kind == KEYS, d < im.split, LATENT);
    if of_k {
        return k(token * im.k_token + head * im.k_head + d);
    }
    return v(token * im.v_token + head * im.v_head + select(d, d - im.split, LATENT));
}

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = linear_group(group, groups);
    let rows = im.kv_heads * select(2u, 1u, LATENT);
    let token = index / rows;
    if token >= im.tokens {
        return;
    }
    let row = index % rows;
    write_row(row / im.kv_heads, token, row % im.kv_heads, lane);
}
