// One invocation a word of the output that a row reaches into: a word that the row fills is stored, of others the row's
// bytes are changed.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = linear_group(group, groups) * 64u + lane;
    let row = index / im.words;
    if row >= im.rows {
        return;
    }
    let c = row % im.c;
    let b = (row / im.c) % im.b;
    let a = row / im.c / im.b;
    let source_start = a * im.source_a + b * im.source_b + c * im.source_c;
    let out_start = out_at(a * im.out_a + b * im.out_b + c * im.out_c);
    let word = out_start / 4u + index % im.words;
    let first = max(word * 4u, out_start);
    let last = min(word * 4u + 4u, out_start + im.row);
    if first >= last {
        return;
    }
    var bits = 0u;
    for (var at = first; at < last; at++) {
        bits = insertBits(bits, u32(source(source_start + (at - out_start))), 8u * (at & 3u), 8u);
    }
    if last - first == 4u {
        atomicStore(&out_words[word], bits);
        return;
    }
    let shift = 8u * (first & 3u);
    let mask = ((1u << (8u * (last - first))) - 1u) << shift;
    atomicXor(&out_words[word], (atomicLoad(&out_words[word]) ^ bits) & mask);
}
