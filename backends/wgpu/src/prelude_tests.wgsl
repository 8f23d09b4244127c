// One function of the prelude, of each pair of elements. Bits go in and come out as floats.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = linear_group(group, groups) * 64u + lane;
    if i >= im.count {
        return;
    }
    let bits = bitcast<u32>(x(i));
    switch FUNCTION {
        case 0u: { set_out(i, exponential(x(i))); }
        case 1u: { set_out(i, logarithm(x(i))); }
        case 2u: { set_out(i, hyperbolic_tangent(x(i))); }
        case 3u: { set_out(i, divide(x(i), y(i))); }
        case 4u: { set_out(i, f16_decode(bits)); }
        case 5u: { out_words[out_at(i)] = f16_encode(f16_decode(bits)); }
        case 6u: { out_words[out_at(i)] = f16_encode(x(i)); }
        default: { out_words[out_at(i)] = bf16_encode(x(i)); }
    }
}
