// out[row][column] = Σ x[row][k] w[column][k], 64 rows and columns a workgroup, 4 x 4 of them an invocation. COLUMNS of out
// and WORDS of a row of x are constants of the probe, multiples of 64 and of 16.

@group(0) @binding(0) var<storage, read> x: array<Word>;
@group(0) @binding(1) var<storage, read> w: array<Word>;
@group(0) @binding(2) var<storage, read_write> out: array<Sum>;

const TILE: u32 = 64u;
const DEPTH: u32 = 16u;
// One more than a tile, so that neighbours store to different banks.
const PITCH: u32 = 65u;

var<workgroup> x_tile: array<Word, 1040>;
var<workgroup> w_tile: array<Word, 1040>;

fn of_x(at: u32) -> vec4<Word> {
    return vec4(x_tile[at], x_tile[at + 16u], x_tile[at + 32u], x_tile[at + 48u]);
}

fn of_w(at: u32) -> vec4<Word> {
    return vec4(w_tile[at], w_tile[at + 16u], w_tile[at + 32u], w_tile[at + 48u]);
}

fn store(at: u32, sums: vec4<Sum>) {
    out[at] = sums.x;
    out[at + 16u] = sums.y;
    out[at + 32u] = sums.z;
    out[at + 48u] = sums.w;
}

@compute @workgroup_size(16, 16)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
) {
    let row = group.y * TILE;
    let column = group.x * TILE;
    var a = vec4<Sum>();
    var b = vec4<Sum>();
    var c = vec4<Sum>();
    var d = vec4<Sum>();
    for (var start = 0u; start < WORDS; start += DEPTH) {
        for (var i = index; i < TILE * DEPTH; i += 256u) {
            let r = i / DEPTH;
            let k = i % DEPTH;
            x_tile[k * PITCH + r] = x[(row + r) * WORDS + start + k];
            w_tile[k * PITCH + r] = w[(column + r) * WORDS + start + k];
        }
        workgroupBarrier();
        for (var k = 0u; k < DEPTH; k++) {
            let xs = of_x(k * PITCH + local.y);
            let ws = of_w(k * PITCH + local.x);
            a = outer(xs.x, ws, a);
            b = outer(xs.y, ws, b);
            c = outer(xs.z, ws, c);
            d = outer(xs.w, ws, d);
        }
        workgroupBarrier();
    }
    let at = (row + local.y) * COLUMNS + column + local.x;
    store(at, a);
    store(at + 16u * COLUMNS, b);
    store(at + 32u * COLUMNS, c);
    store(at + 48u * COLUMNS, d);
}
