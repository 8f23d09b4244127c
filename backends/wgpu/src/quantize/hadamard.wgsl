// Blocks of columns times the normalised Walsh-Hadamard matrix, by halves of 1, 2, 4 ... in workgroup memory. A workgroup
// makes 2048 of the outputs as they stand one after another, in parts of a block that fit: of a larger block a part is the
// transform of the sum of all parts, each with its sign.

const HELD: u32 = 2048u;

var<workgroup> held: array<f32, HELD>;

fn smoothed(row: u32, column: u32) -> f32 {
    let y = x(row * im.x_stride + column);
    if HAS_FACTORS {
        return divide(y, factors(column));
    }
    return y;
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let first = linear_group(group, groups) * HELD;
    if first >= im.elements {
        return;
    }
    let part = min(im.block, HELD);
    for (var at = lane; at < HELD && first + at < im.elements; at += 256u) {
        let row = (first + at) / im.columns;
        let column = (first + at) % im.columns;
        let within = column % im.block;
        let start = column - within + within % part;
        var y = smoothed(row, start);
        for (var other = 1u; other * part < im.block; other++) {
            let more = smoothed(row, start + other * part);
            y += select(more, -more, (countOneBits(other & (within / part)) & 1u) == 1u);
        }
        held[at] = y;
    }
    for (var half = 1u; half < part; half *= 2u) {
        workgroupBarrier();
        for (var pair = lane; pair < HELD / 2u; pair += 256u) {
            let left = pair / half * 2u * half + pair % half;
            let a = held[left];
            let b = held[left + half];
            held[left] = a + b;
            held[left + half] = a - b;
        }
    }
    workgroupBarrier();
    for (var at = lane; at < HELD && first + at < im.elements; at += 256u) {
        set_out((first + at) / im.columns * im.out_stride + (first + at) % im.columns, held[at] * im.factor);
    }
}
