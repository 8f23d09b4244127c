// What adapters that pass every check of features computed wrong elsewhere. Invocation i of all puts the answer of check c
// at c · points + i; `self_test.rs` has the checks in this order, and the right answers.

var<workgroup> words: array<u32, 256>;
var<workgroup> total: atomic<u32>;
var<workgroup> largest: atomic<u32>;

fn tell(check: u32, point: u32, answer: u32) {
    set_found(check * im.points + point, answer);
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let number = linear_group(group, groups);
    let point = number * 256u + lane;
    let a = numbers(point);
    let b = numbers(im.points + point);
    let x = bitcast<f32>(numbers(2u * im.points + point));
    let y = bitcast<f32>(numbers(3u * im.points + point));
    let value = bitcast<f32>(a);

    tell(0u, point, number);
    tell(1u, point, bitcast<u32>(f16_decode(a & 0xffffu)));
    tell(2u, point, u32(is_nan(value)) | u32(is_finite(value)) << 1u | u32(is_nan(value + 1.0f)) << 2u);
    tell(3u, point, bitcast<u32>(infinity()));
    tell(4u, point, bitcast<u32>(dot4I8Packed(a, b)));
    tell(5u, point, (a / (b | 1u)) ^ (a % (b | 1u)));
    // A divisor above 0, so that no quotient is out of range.
    let divisor = bitcast<i32>((b >> 1u) | 1u);
    tell(6u, point, bitcast<u32>((bitcast<i32>(a) / divisor) ^ (bitcast<i32>(a) % divisor)));
    tell(7u, point, bitcast<u32>(bitcast<i32>(a) >> (b & 31u)) ^ (a << ((b >> 5u) & 31u)));
    tell(8u, point, bitcast<u32>(extractBits(bitcast<i32>(a), b % 24u, 8u)));
    tell(9u, point, bitcast<u32>(i32(round(f32(i32(a & 0x3ffu) - 512) * 0.5f))));
    tell(10u, point, bitcast<u32>(exponential(x)));
    tell(11u, point, bitcast<u32>(divide(x, y)));

    words[lane] = a;
    if lane == 0u {
        atomicStore(&total, 0u);
        atomicStore(&largest, 0u);
    }
    workgroupBarrier();
    tell(12u, point, words[255u - lane]);
    atomicAdd(&total, b);
    atomicMax(&largest, b);
    workgroupBarrier();
    tell(13u, point, atomicLoad(&total));
    tell(14u, point, atomicLoad(&largest));
    for (var step = 128u; step > 0u; step >>= 1u) {
        if lane < step {
            words[lane] += words[lane + step];
        }
        workgroupBarrier();
    }
    tell(15u, point, words[0]);
    tell(16u, point, bitcast<u32>(logarithm(abs(y))));
    tell(17u, point, bitcast<u32>(hyperbolic_tangent(x)));

    set_halves(point, value);
    set_brains(point, value);
    // The bytes of a word are written by different workgroups.
    set_bytes(lane * (im.points / 256u) + number, bitcast<i32>(a << 24u) >> 24u);
}
