// One invocation a token that penalties or biases touch: each token of a row comes once.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = linear_group(group, groups) * 64u + lane;
    if index >= im.touched {
        return;
    }
    let at = im.touched_start + 4u * index;
    let row = table(at);
    let token = min(table(at + 1u), im.vocabulary - 1u);
    let what = table(at + 2u);
    let place = row * im.row_stride + token;
    var x = bitcast<f32>(logits(place));
    if !is_finite(x) {
        // No finite penalty and no finite bias changes it.
        return;
    }
    if (what & 1u) != 0u {
        let repetition = bitcast<f32>(table(3u * row));
        if x > 0.0f {
            x = divide(x, repetition);
        } else {
            x = x * repetition;
        }
        let outputs = what >> 2u;
        if outputs > 0u {
            x -= bitcast<f32>(table(3u * row + 2u)) * f32(outputs);
            x -= bitcast<f32>(table(3u * row + 1u));
        }
    }
    if (what & 2u) != 0u {
        x += bitcast<f32>(table(at + 3u));
    }
    set_logits(place, bitcast<u32>(x));
}
