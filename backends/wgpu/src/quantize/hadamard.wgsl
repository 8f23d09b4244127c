// Blocks of columns times the normalised Walsh-Hadamard matrix, by halves of 1, 2, 4 ... in workgroup memory. A workgroup
// makes 1024 of the outputs as they stand one after another, in parts of a block that fit: of a larger block a part is the
// transform of the sum of all parts, each with its sign.
//
// Devices may flush subnormal numbers, sums among them. So what is below 2^-100 is summed apart, 2^64 times as large, and
// sums of the rest are whole multiples of 2^-123.

const HELD: u32 = 1024u;

var<workgroup> held: array<f32, HELD>;
var<workgroup> held_small: array<f32, HELD>;
var<workgroup> any_small: atomic<u32>;

// An element, and what of it is summed apart.
fn parted(row: u32, column: u32) -> vec2<f32> {
    var y = x(row * im.x_stride + column);
    if HAS_FACTORS {
        y = divide(y, factors(column));
    }
    let bits = bitcast<u32>(y);
    let size = bits & 0x7fffffffu;
    if size >= 0x0d800000u {
        return vec2(y, 0.0f);
    }
    if size >= 0x800000u {
        return vec2(0.0f, y * 0x1p+64f);
    }
    let small = f32(size) * 0x1p-85f;
    return vec2(0.0f, select(small, -small, bits > 0x80000000u));
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
    if lane == 0u {
        atomicStore(&any_small, 0u);
    }
    workgroupBarrier();
    let part = min(im.block, HELD);
    for (var at = lane; at < HELD && first + at < im.elements; at += 256u) {
        let row = (first + at) / im.columns;
        let column = (first + at) % im.columns;
        let within = column % im.block;
        let start = column - within + within % part;
        var y = parted(row, start);
        for (var other = 1u; other * part < im.block; other++) {
            let more = parted(row, start + other * part);
            y += select(more, -more, (countOneBits(other & (within / part)) & 1u) == 1u);
        }
        held[at] = y.x;
        held_small[at] = y.y;
        if y.y != 0.0f {
            atomicStore(&any_small, 1u);
        }
    }
    workgroupBarrier();
    // Without them their sums are 0: not to take them changes no bit.
    let take_small = atomicLoad(&any_small) != 0u;
    for (var half = 1u; half < part; half *= 2u) {
        for (var pair = lane; pair < HELD / 2u; pair += 256u) {
            let left = pair / half * 2u * half + pair % half;
            let a = held[left];
            let b = held[left + half];
            held[left] = a + b;
            held[left + half] = a - b;
            if take_small {
                let c = held_small[left];
                let d = held_small[left + half];
                held_small[left] = c + d;
                held_small[left + half] = c - d;
            }
        }
        workgroupBarrier();
    }
    for (var at = lane; at < HELD && first + at < im.elements; at += 256u) {
        let large = held[at];
        var y = large * im.factor;
        if take_small {
            let small = held_small[at];
            y = select((large + small * 0x1p-64f) * im.factor, small * im.factor * 0x1p-64f, large == 0.0f);
        }
        set_out((first + at) / im.columns * im.out_stride + (first + at) % im.columns, y);
    }
}
