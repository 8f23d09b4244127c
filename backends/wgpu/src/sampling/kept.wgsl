// Which candidates of a row may be drawn: the contract's first three steps, and the draw of the fourth.

// Words of a row in the table.
const ROW_WORDS: u32 = 9u;
const SCALE: u32 = 1u;
const TOP_K: u32 = 2u;
const TOP_P: u32 = 3u;
const MIN_P: u32 = 4u;
const UNIFORM: u32 = 5u;
const ACCEPTANCE: u32 = 6u;
const RESIDUAL: u32 = 7u;
const DRAFT: u32 = 8u;

// A prefix of the order, of which only what weighs at least `least` is kept, and the sum of the weights of that.
struct Kept {
    last: vec2<u32>,
    least: f32,
    sum: vec2<u32>,
    tallied: Sum,
}

fn parameter(row: u32, word: u32) -> u32 {
    return table(row * ROW_WORDS + word);
}

// Whether the row is drawn from, and not its first candidate taken.
fn is_drawn(row: u32, first: vec2<u32>) -> bool {
    return parameter(row, SCALE) != 0u && has_weights(first.x);
}

fn is_kept(kept: Kept, place: vec2<u32>) -> bool {
    return place.x != UNORDERED && !comes_first(kept.last, place) && weight_of(place.x) >= kept.least;
}

fn keep(lane: u32, row: u32, first: vec2<u32>) -> Kept {
    weigh_from(first.x, bitcast<f32>(parameter(row, 0u)), bitcast<f32>(parameter(row, SCALE)));
    let tallied = tally(lane, row, WHOLE);
    let whole = total(lane, tallied);
    var last = vec2(UNORDERED - 1u, UNORDERED);
    var sum = whole.weight;
    let top_k = parameter(row, TOP_K);
    if top_k > 0u && top_k < whole.count {
        let found = pass_goal(lane, row, WHOLE, tallied, true, vec2(top_k - 1u, 0u));
        last = found.place;
        sum = found.sum;
    }
    let top_p = parameter(row, TOP_P);
    if top_p > 0u {
        let enough = wide_part(sum, top_p);
        let short = select(wide_difference(enough, vec2(1u, 0u)), enough, all(enough == vec2(0u, 0u)));
        let found = pass_goal(lane, row, WHOLE, tallied, false, short);
        last = found.place;
        sum = found.sum;
    }
    var kept = Kept(last, bitcast<f32>(parameter(row, MIN_P)), sum, tallied);
    if kept.least > 0.0f {
        var mine = Sum(vec2(0u, 0u), 0u);
        for (var id = lane; id < im.vocabulary; id += 256u) {
            let place = place_of(row, id);
            if is_kept(kept, place) {
                mine.weight = wide_sum(mine.weight, wide_of(weight_of(place.x), im.bits));
            }
        }
        kept.sum = total(lane, mine).weight;
    }
    return kept;
}

fn draw(lane: u32, row: u32, kept: Kept) -> u32 {
    let goal = wide_part(kept.sum, parameter(row, UNIFORM));
    return pass_goal(lane, row, WHOLE, kept.tallied, false, goal).place.y;
}

// The first in the row's order: of the parts that were searched before, or of the ids.
fn first_of_row(lane: u32, row: u32) -> vec2<u32> {
    if !HAS_FIRSTS {
        return first_of_ids(lane, row, 0u, im.vocabulary);
    }
    var found = vec2(UNORDERED, UNORDERED);
    if lane < im.parts {
        let at = 2u * (row * im.parts + lane);
        found = vec2(firsts(at), firsts(at + 1u));
    }
    return first_of_lanes(lane, found);
}
