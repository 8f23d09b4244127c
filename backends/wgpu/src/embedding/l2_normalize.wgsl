// A workgroup a row. The sum of squares is one of 256 chains of columns 256 apart, added up by halves: whatever the batch.

var<workgroup> largest: atomic<u32>;
const LANES: u32 = 256u;

// √v: WGSL's own may be some ULP off.
fn root(v: f32) -> f32 {
    let s = sqrt(v);
    if !(s > 0.0f) || !is_finite(s) {
        return s;
    }
    return fma(fma(-s, s, v), divide(0.5f, s), s);
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = linear_group(group, groups);
    if row >= im.rows {
        return;
    }
    let start = row * im.x_stride;
    // Magnitudes as bits: they are in order, infinity above what is finite, NaN above infinity.
    var most = 0u;
    for (var column = lane; column < im.columns; column += 256u) {
        most = max(most, bitcast<u32>(x(start + column)) & 0x7fffffffu);
    }
    if lane == 0u {
        atomicStore(&largest, 0u);
    }
    workgroupBarrier();
    atomicMax(&largest, most);
    workgroupBarrier();
    most = atomicLoad(&largest);
    // A power of two: it changes no digit. Up to 2^40, and of all of F32 times 2^-80, 2^31 squares add up within F32; and
    // those that 2^-80 makes subnormal are of elements that do not count beside one above 2^40.
    let shrink = select(1.0f, 0x1p-80f, most > 0x53800000u);
    var sum = 0.0f;
    for (var column = lane; column < im.columns; column += 256u) {
        let part = x(start + column) * shrink;
        sum = fma(part, part, sum);
    }
    let inverse = divide(1.0f, max(root(sum_of_lanes(lane, sum)), im.eps * shrink));
    for (var column = lane; column < im.columns; column += 256u) {
        let value = x(start + column);
        var y = value * inverse * shrink;
        if most > 0x7f800000u || !is_finite(value) {
            y = not_a_number();
        } else if most == 0x7f800000u {
            y = 0.0f;
        }
        set_out(row * im.out_stride + column, y);
    }
}
