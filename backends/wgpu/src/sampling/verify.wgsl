// One workgroup a row of logits: whether the row's draft, drawn from `q`, stands, and the token that is taken if it does
// not. A standing draft is told by -1.

// What is left of the row's distribution where `q` is taken away: what `candidate` weighs meanwhile.
var<private> of_rest: bool;
var<private> own: Kept;
var<private> own_sum: f32;
var<private> q_start: u32;

fn probability(place: vec2<u32>) -> f32 {
    if !is_kept(own, place) {
        return 0.0f;
    }
    return divide(weight_of(place.x), own_sum);
}

// NaN and what is below 0 count as 0.
fn draft_probability(id: u32) -> f32 {
    let y = q(q_start + id);
    if is_nan(y) || y < 0.0f {
        return 0.0f;
    }
    return min(y, 0x1p127f);
}

// By id alone where the rest is drawn from.
fn in_order(place: vec2<u32>) -> vec2<u32> {
    return vec2(select(place.x, 0u, of_rest), place.y);
}

fn candidate(place: vec2<u32>) -> Candidate {
    if of_rest {
        // NaN, which is no place, weighs nothing.
        let rest = max(probability(place) - draft_probability(min(place.y, im.vocabulary - 1u)), 0.0f);
        let weight = wide_of(min(rest, 1.0f), im.bits);
        return Candidate(weight, u32(any(weight != vec2(0u, 0u))));
    }
    return Candidate(wide_of(weight_of(place.x), im.bits), 1u);
}

fn accepts(row: u32, id: u32, p: f32) -> bool {
    return f32(parameter(row, ACCEPTANCE) >> 8u) * 0x1p-24f * draft_probability(id) < p;
}

// What replaces a draft that fell.
fn replacement(lane: u32, row: u32) -> u32 {
    let was_listed = listed;
    let had_items = items;
    of_rest = true;
    listed = false;
    items = im.vocabulary;
    let ids = Prefix(ID_LEVEL, 0u, 0u);
    let sums = tally(lane, row, ids);
    let rest = total(lane, sums).weight;
    if all(rest == vec2(0u, 0u)) {
        of_rest = false;
        listed = was_listed;
        items = had_items;
        return draw(lane, row, own);
    }
    let goal = wide_part(rest, parameter(row, RESIDUAL));
    return pass_goal(lane, row, ids, sums, false, goal).place.y;
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
    let first = first_of_row(lane, row);
    let draft = parameter(row, DRAFT);
    let is_draft = draft != UNORDERED;
    var id = UNORDERED;
    if is_draft {
        // An id below 0 is beyond every vocabulary.
        id = drafts(draft);
        q_start = draft * im.q_stride;
    }
    let known = id < im.vocabulary;
    var token = first.y;
    var stands = false;
    if is_drawn(row, first) {
        own = keep(lane, row, first);
        own_sum = wide_float(own.sum) * im.unit;
        if known {
            stands = accepts(row, id, probability(place_of(row, id)));
        }
        if is_draft && !stands {
            token = replacement(lane, row);
        }
        if !is_draft {
            token = draw(lane, row, own);
        }
    } else if known {
        stands = id == token && accepts(row, id, 1.0f);
    }
    if lane == 0u {
        set_tokens(row, select(min(token, im.vocabulary - 1u), UNORDERED, stands));
    }
}
