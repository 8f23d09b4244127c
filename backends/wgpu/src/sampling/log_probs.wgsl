// One workgroup a row: the target's log-probability, the highest, and all.

// Candidates that are sorted at once: as many as there is workgroup memory for.
const BLOCK: u32 = 1024u;

var<workgroup> gathered: atomic<u32>;

// Where a row has weights: its greatest logit, and the logarithm of the sum of the weights.
struct Scale {
    weighs: bool,
    greatest: f32,
    log_sum: f32,
}

fn log_prob(own: Scale, bits: u32) -> f32 {
    let x = bitcast<f32>(bits);
    if !own.weighs {
        return not_a_number();
    }
    if !is_finite(x) {
        return x;
    }
    return x - own.greatest - own.log_sum;
}

// Sorts the first `size` entries of the tallies, a power of two, by rank and id (Batcher 1968).
fn sort(lane: u32, size: u32) {
    for (var run = 2u; run <= size; run *= 2u) {
        for (var apart = run / 2u; apart > 0u; apart /= 2u) {
            for (var pair = lane; pair < size / 2u; pair += 256u) {
                let low = 2u * (pair - pair % apart) + pair % apart;
                let high = low + apart;
                let a = vec2(atomicLoad(&tally_low[low]), atomicLoad(&tally_high[low]));
                let b = vec2(atomicLoad(&tally_low[high]), atomicLoad(&tally_high[high]));
                let ascends = (low & run) == 0u;
                if comes_first(b, a) == ascends {
                    atomicStore(&tally_low[low], b.x);
                    atomicStore(&tally_high[low], b.y);
                    atomicStore(&tally_low[high], a.x);
                    atomicStore(&tally_high[high], a.y);
                }
            }
            workgroupBarrier();
        }
    }
}

// The places `start` to `end` of the order, which are those behind `after` up to `last`.
fn highest(lane: u32, row: u32, own: Scale, start: u32, end: u32, after: vec2<u32>, last: vec2<u32>) {
    var size = 1u;
    while size < end - start {
        size *= 2u;
    }
    for (var slot = lane; slot < size; slot += 256u) {
        atomicStore(&tally_low[slot], UNORDERED);
        atomicStore(&tally_high[slot], UNORDERED);
    }
    if lane == 0u {
        atomicStore(&gathered, 0u);
    }
    workgroupBarrier();
    for (var id = lane; id < im.vocabulary; id += 256u) {
        let place = place_of(row, id);
        if (start == 0u || comes_first(after, place)) && !comes_first(last, place) {
            let slot = min(atomicAdd(&gathered, 1u), BLOCK - 1u);
            atomicStore(&tally_low[slot], place.x);
            atomicStore(&tally_high[slot], place.y);
        }
    }
    workgroupBarrier();
    sort(lane, size);
    for (var slot = lane; slot < end - start; slot += 256u) {
        let id = min(atomicLoad(&tally_high[slot]), im.vocabulary - 1u);
        set_ids(row * im.ids_stride + start + slot, i32(id));
        set_top(row * im.top_stride + start + slot, log_prob(own, logits(row * im.row_stride + id)));
    }
    workgroupBarrier();
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
    let first = first_of_ids(lane, row, 0u, im.vocabulary);
    weigh_from(first.x, 1.0f, 1.0f);
    var own = Scale(has_weights(first.x), 0.0f, 0.0f);
    var mine = Sum(vec2(0u, 0u), 0u);
    if own.weighs {
        for (var id = lane; id < im.vocabulary; id += 256u) {
            mine.weight = wide_sum(mine.weight, candidate(row, id).weight);
        }
        own.greatest = greatest;
    }
    own.log_sum = logarithm(wide_float(total(lane, mine).weight) * im.unit);
    if lane == 0u {
        let id = targets(row);
        var y = not_a_number();
        if id >= 0i && u32(id) < im.vocabulary {
            y = log_prob(own, logits(row * im.row_stride + u32(id)));
        }
        set_out(row, y);
    }
    if HAS_ALL {
        for (var id = lane; id < im.vocabulary; id += 256u) {
            set_all(row * im.all_stride + id, log_prob(own, logits(row * im.row_stride + id)));
        }
    }
    if HAS_IDS {
        let tallied = tally(lane, row, WHOLE);
        var after = vec2(0u, 0u);
        for (var start = 0u; start < im.highest; start += BLOCK) {
            let end = min(start + BLOCK, im.highest);
            let last = pass_goal(lane, row, WHOLE, tallied, true, vec2(end - 1u, 0u)).place;
            highest(lane, row, own, start, end, after, last);
            after = last;
        }
    }
}
