// Which candidates of a row may be drawn: the contract's first three steps, and the draw of the fourth.

// A prefix of the order, of which only what weighs at least `least` is kept, and the sum of the weights of that.
struct Kept {
    last: vec2<u32>,
    least: f32,
    sum: vec2<u32>,
}

// Behind every candidate but NaN.
const ALL: vec2<u32> = vec2(0xfffffffeu, 0xffffffffu);

// The sums of the items by the rank's first digit, each lane one of them, and of all items.
var<private> tallied: Sum;
var<private> inside: Sum;

fn look(lane: u32, row: u32, at_list: bool, count: u32) {
    listed = at_list;
    items = count;
    tallied = tally(lane, row, WHOLE);
    inside = total(lane, tallied);
}

// The candidate at which the running sum of the whole row passes a goal: of the list where that goes so far.
fn reach(lane: u32, row: u32, by_count: bool, goal: vec2<u32>) -> Found {
    if listed && !wide_less(goal, select(inside.weight, vec2(inside.count, 0u), by_count)) {
        look(lane, row, false, im.vocabulary);
    }
    return pass_goal(lane, row, WHOLE, tallied, by_count, goal);
}

fn is_kept(kept: Kept, place: vec2<u32>) -> bool {
    return place.x != UNORDERED && !comes_first(kept.last, place) && weight_of(place.x) >= kept.least;
}

// Looks at the row, and gives the sum of all of it.
fn begin(lane: u32, row: u32) -> Sum {
    if HAS_LISTS {
        let list = row * im.list_stride;
        let length = lists(list);
        if length <= LISTED {
            var part = Sum(vec2(0u, 0u), 0u);
            if lane < im.parts {
                let at = list + 1u + 3u * lane;
                part = Sum(vec2(lists(at), lists(at + 1u)), lists(at + 2u));
            }
            look(lane, row, true, length);
            return total(lane, part);
        }
    }
    look(lane, row, false, im.vocabulary);
    return inside;
}

fn keep(lane: u32, row: u32, first: vec2<u32>) -> Kept {
    weigh_row(row, first);
    let whole = begin(lane, row);
    var kept = Kept(ALL, bitcast<f32>(parameter(row, MIN_P)), whole.weight);
    let top_k = parameter(row, TOP_K);
    if top_k > 0u && top_k < whole.count {
        let found = reach(lane, row, true, vec2(top_k - 1u, 0u));
        kept.last = found.place;
        kept.sum = found.sum;
    }
    let top_p = parameter(row, TOP_P);
    if top_p > 0u {
        // Reaching a sum is passing what is 1 less.
        let enough = wide_part(kept.sum, top_p);
        let nothing = all(enough == vec2(0u, 0u));
        let goal = select(wide_difference(enough, vec2(1u, 0u)), enough, nothing);
        let found = reach(lane, row, false, goal);
        kept.last = found.place;
        kept.sum = found.sum;
    }
    if kept.least > 0.0f {
        // The list has everything above e^-14, and up to a last candidate that was found in it.
        if listed && all(kept.last == ALL) && kept.least < 2e-6f {
            look(lane, row, false, im.vocabulary);
        }
        var mine = Sum(vec2(0u, 0u), 0u);
        for (var i = lane; i < items; i += 256u) {
            let place = item(row, i);
            if is_kept(kept, place) {
                mine.weight = wide_sum(mine.weight, wide_of(weight_of(place.x), im.bits));
            }
        }
        kept.sum = total(lane, mine).weight;
    }
    return kept;
}

fn draw(lane: u32, row: u32, kept: Kept) -> u32 {
    return reach(lane, row, false, wide_part(kept.sum, parameter(row, UNIFORM))).place.y;
}
