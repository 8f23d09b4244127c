// A stable counting sort of slots by expert, without memory of its own: one workgroup an expert counts the slots of those
// before it and its own, which are few and read from the cache. One more has the slots of experts that are elsewhere, whose
// place among the experts is `count`. Lane l has the l-th part of all slots.

var<workgroup> counts: array<vec2<u32>, 256>;

fn expert_of(id: i32) -> u32 {
    return min(bitcast<u32>(id) - im.first, im.count);
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let expert = linear_group(group, groups);
    if expert > im.count {
        return;
    }
    let slots = im.tokens * im.top_k;
    let part = (slots + 255u) / 256u;
    let first = min(lane * part, slots);
    let last = min(first + part, slots);
    // Of this expert, and of those before it.
    var own = vec2(0u);
    var token = first / im.top_k;
    var slot = first % im.top_k;
    for (var at = first; at < last; at++) {
        let wanted = expert_of(ids(token * im.ids_stride + slot));
        own += vec2(u32(wanted == expert), u32(wanted < expert));
        slot++;
        if slot == im.top_k {
            token++;
            slot = 0u;
        }
    }
    counts[lane] = own;
    workgroupBarrier();
    for (var step = 1u; step < 256u; step *= 2u) {
        var earlier = vec2(0u);
        if lane >= step {
            earlier = counts[lane - step];
        }
        workgroupBarrier();
        counts[lane] += earlier;
        workgroupBarrier();
    }
    let begin = counts[255].y;
    if lane == 0u {
        set_offsets(expert, i32(begin));
    }
    var place = begin + counts[lane].x - own.x;
    token = first / im.top_k;
    slot = first % im.top_k;
    for (var at = first; at < last; at++) {
        if expert_of(ids(token * im.ids_stride + slot)) == expert {
            set_places(token * im.places_stride + slot, select(i32(place), -1, expert == im.count));
            place++;
        }
        slot++;
        if slot == im.top_k {
            token++;
            slot = 0u;
        }
    }
}
