// One workgroup a part of a row that is drawn from: the sum of its weights, and its candidates near the greatest, which go
// to the row's list. In which order they come there changes nothing: sums are exact.

// Candidates that weigh e^-14 or more are near.
const FAR: f32 = 14.0f;

fn tell(at: u32, value: u32) {
    atomicStore(&lists_words[lists_at(at)], value);
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = linear_group(group, groups);
    let row = index / im.parts;
    if row >= im.rows {
        return;
    }
    let first = first_of_row(lane, row);
    if !is_drawn(row, first) {
        return;
    }
    weigh_row(row, first);
    // By rank: so what is near comes first in the order, whatever rounding did to weights.
    // Where even those that F32 cannot subtract weigh something, everything is near.
    let least = select(bitcast<f32>(bits_of(first.x)) - FAR / scale, -0x1.fffffep+127f, before < 1.0f);
    let last = rank_of(bitcast<u32>(least));
    let start = index % im.parts * im.part;
    let end = min(start + im.part, im.vocabulary);
    var mine = Sum(vec2(0u, 0u), 0u);
    var near = 0u;
    for (var id = start + lane; id < end; id += 1024u) {
        let places = places_of(row, id, end);
        let ranks = vec4(places[0].x, places[1].x, places[2].x, places[3].x);
        for (var i = 0u; i < 4u; i++) {
            mine.weight = wide_sum(mine.weight, wide_of(weight_of(ranks[i]), im.bits));
            mine.count += u32(ranks[i] != UNORDERED);
            near += u32(ranks[i] <= last);
        }
    }
    let list = row * im.list_stride;
    let whole = total(lane, mine);
    let upto = scan(lane, Sum(vec2(0u, 0u), near)).count;
    if lane == 255u {
        let at = list + 1u + 3u * (index % im.parts);
        tell(at, whole.weight.x);
        tell(at + 1u, whole.weight.y);
        tell(at + 2u, whole.count);
        chosen[0] = atomicAdd(&lists_words[lists_at(list)], upto);
    }
    workgroupBarrier();
    var slot = chosen[0] + upto - near;
    for (var id = start + lane; id < end && near > 0u; id += 256u) {
        let place = place_of(row, id);
        if place.x <= last {
            if slot < LISTED {
                let at = list + 1u + 3u * im.parts + 2u * slot;
                tell(at, place.x);
                tell(at + 1u, place.y);
            }
            slot++;
            near--;
        }
    }
}
