// One invocation a column of a sequence. The mean's sum is one chain in the order of tokens; eight loads are on their way at
// a time.

const FIRST: u32 = 0u;
const LAST: u32 = 1u;

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = linear_group(group, groups) * 64u + lane;
    let sequence = index / im.hidden;
    if sequence >= im.sequences {
        return;
    }
    let column = index % im.hidden;
    let end = min(u32(starts(sequence + 1u)), im.tokens);
    let start = min(u32(starts(sequence)), end);
    var y = 0.0f;
    if start < end {
        let first = select(start, end - 1u, POOLING == LAST);
        y = x(first * im.x_stride + column);
        if POOLING > LAST && end - start > 1u {
            var token = start + 1u;
            for (; token + 8u <= end; token += 8u) {
                let at = token * im.x_stride + column;
                let a = vec4(x(at), x(at + im.x_stride), x(at + 2u * im.x_stride), x(at + 3u * im.x_stride));
                let next = at + 4u * im.x_stride;
                let b = vec4(x(next), x(next + im.x_stride), x(next + 2u * im.x_stride), x(next + 3u * im.x_stride));
                y = (((y + a.x) + a.y) + a.z) + a.w;
                y = (((y + b.x) + b.y) + b.z) + b.w;
            }
            for (; token < end; token++) {
                y += x(token * im.x_stride + column);
            }
            y = divide(y, f32(end - start));
        }
    }
    set_out(sequence * im.out_stride + column, y);
}
