// Each of READERS invocations sums its share of the words, four at once beside its neighbour's.

@group(0) @binding(0) var<storage, read> words: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var sum = vec4<u32>();
    let quads = arrayLength(&words);
    for (var i = id.x; i < quads; i += READERS) {
        sum += words[i];
    }
    out[id.x] = sum.x + sum.y + sum.z + sum.w;
}
