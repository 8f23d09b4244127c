// out[column] = Σ x[k] w[column][k]: 8 columns a workgroup, 32 invocations a column, which read neighbouring words. A row
// has QUADS vectors of four words.

@group(0) @binding(0) var<storage, read> x: array<vec4<Word>>;
@group(0) @binding(1) var<storage, read> w: array<vec4<Word>>;
@group(0) @binding(2) var<storage, read_write> out: array<Sum>;

const LANES: u32 = 32u;

var<workgroup> sums: array<Sum, 256>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let column = group.x * 8u + index / LANES;
    let lane = index % LANES;
    var sum = Sum();
    for (var k = lane; k < QUADS; k += LANES) {
        sum = inner(x[k], w[column * QUADS + k], sum);
    }
    sums[index] = sum;
    workgroupBarrier();
    for (var half = LANES / 2u; half > 0u; half /= 2u) {
        if lane < half {
            sums[index] += sums[index + half];
        }
        workgroupBarrier();
    }
    if lane == 0u {
        out[column] = sums[index];
    }
}
