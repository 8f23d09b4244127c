// Records of `bytes` bytes from place to place, a pair of the table each: an invocation a word that a record reaches into.

fn byte(at: u32) -> u32 {
    return atomicLoad(&source_words[source_at(at / 4u)]) >> (8u * (at & 3u));
}

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = linear_group(group, groups) * 64u + lane;
    let pair = index / im.words;
    if pair >= im.count {
        return;
    }
    // In bytes.
    let source = im.source_first + u32(pairs(2u * pair)) * im.source_stride;
    let first = im.target_first + u32(pairs(2u * pair + 1u)) * im.target_stride;
    let end = first + im.bytes;
    let word = first / 4u + index % im.words;
    let start = max(word * 4u, first);
    let stop = min(word * 4u + 4u, end);
    if start >= stop {
        return;
    }
    let at = destination_at(word);
    let place = source + (start - first);
    if stop - start == 4u {
        let shift = 8u * (place & 3u);
        var bits = atomicLoad(&source_words[source_at(place / 4u)]);
        if shift != 0u {
            bits = (bits >> shift) | (atomicLoad(&source_words[source_at(place / 4u + 1u)]) << (32u - shift));
        }
        atomicStore(&destination_words[at], bits);
        return;
    }
    var bits = 0u;
    var mask = 0u;
    for (var i = 0u; i < stop - start; i++) {
        let shift = 8u * ((start + i) & 3u);
        bits = insertBits(bits, byte(place + i), shift, 8u);
        mask = insertBits(mask, 0xffu, shift, 8u);
    }
    atomicXor(&destination_words[at], (atomicLoad(&destination_words[at]) ^ bits) & mask);
}
