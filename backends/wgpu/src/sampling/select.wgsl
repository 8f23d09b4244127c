// The candidate at which the running sum of a row passes a goal, in the order of candidates and without sorting them: a
// digit of rank and id at a time, most significant first, by the sums of each digit's candidates. Sums are whole numbers,
// so the result is exact. NaN is no candidate. What another weighs, and its place in the order, `candidate` and `in_order`
// say.

struct Candidate {
    weight: vec2<u32>,
    // 0 for what does not count.
    count: u32,
}

// Which candidates: those whose first `level` digits are these. The first 4 are the rank's, the others the id's.
struct Prefix {
    level: u32,
    rank: u32,
    id: u32,
}

// All of them.
const WHOLE: Prefix = Prefix(0u, 0u, 0u);

struct Found {
    place: vec2<u32>,
    // Weights up to this candidate and with it.
    sum: vec2<u32>,
}

const LEVELS: u32 = 7u;
const ID_LEVEL: u32 = 4u;
// Sums of each digit, so that not all lanes add to the same few.
const COPIES: u32 = 4u;

var<workgroup> tally_low: array<atomic<u32>, 1024>;
var<workgroup> tally_high: array<atomic<u32>, 1024>;
var<workgroup> tally_count: array<atomic<u32>, 1024>;

// What is looked at: the row, or the list of its candidates near the greatest.
var<private> listed: bool;
var<private> items: u32;

fn item(row: u32, i: u32) -> vec2<u32> {
    if i >= items {
        return vec2(UNORDERED, UNORDERED);
    }
    if HAS_LISTS {
        if listed {
            let at = row * im.list_stride + 1u + 3u * im.parts + 2u * i;
            return vec2(lists(at), lists(at + 1u));
        }
    }
    return place_of(row, i);
}

fn agrees(prefix: Prefix, place: vec2<u32>) -> bool {
    if prefix.level == 0u {
        return true;
    }
    if prefix.level <= ID_LEVEL {
        return (place.x >> (32u - 8u * prefix.level)) == prefix.rank;
    }
    return place.x == prefix.rank && (place.y >> (56u - 8u * prefix.level)) == prefix.id;
}

fn digit(level: u32, place: vec2<u32>) -> u32 {
    if level < ID_LEVEL {
        return (place.x >> (24u - 8u * level)) & 255u;
    }
    return (place.y >> (48u - 8u * level)) & 255u;
}

fn with_digit(prefix: Prefix, next: u32) -> Prefix {
    if prefix.level < ID_LEVEL {
        return Prefix(prefix.level + 1u, (prefix.rank << 8u) | next, 0u);
    }
    return Prefix(prefix.level + 1u, prefix.rank, (prefix.id << 8u) | next);
}

fn tally_one(lane: u32, place: vec2<u32>, prefix: Prefix) {
    if place.x == UNORDERED || !agrees(prefix, in_order(place)) {
        return;
    }
    let one = candidate(place);
    if one.count == 0u {
        return;
    }
    let slot = digit(prefix.level, in_order(place)) * COPIES + lane % COPIES;
    let low = atomicAdd(&tally_low[slot], one.weight.x) + one.weight.x;
    let high = one.weight.y + u32(low < one.weight.x);
    if high > 0u {
        atomicAdd(&tally_high[slot], high);
    }
    atomicAdd(&tally_count[slot], one.count);
}

// The sum of the candidates of a prefix whose next digit is `lane`.
fn tally(lane: u32, row: u32, prefix: Prefix) -> Sum {
    for (var copy = 0u; copy < COPIES; copy++) {
        atomicStore(&tally_low[copy * 256u + lane], 0u);
        atomicStore(&tally_high[copy * 256u + lane], 0u);
        atomicStore(&tally_count[copy * 256u + lane], 0u);
    }
    workgroupBarrier();
    for (var i = lane; i < items; i += 1024u) {
        // Loads first: they are waited for together.
        let a = item(row, i);
        let b = item(row, i + 256u);
        let c = item(row, i + 512u);
        let d = item(row, i + 768u);
        tally_one(lane, a, prefix);
        tally_one(lane, b, prefix);
        tally_one(lane, c, prefix);
        tally_one(lane, d, prefix);
    }
    workgroupBarrier();
    var sum = Sum(vec2(0u, 0u), 0u);
    for (var copy = 0u; copy < COPIES; copy++) {
        let slot = lane * COPIES + copy;
        let weight = vec2(atomicLoad(&tally_low[slot]), atomicLoad(&tally_high[slot]));
        sum = sum_of(sum, Sum(weight, atomicLoad(&tally_count[slot])));
    }
    workgroupBarrier();
    return sum;
}

// The first candidate in the order whose running sum is above `goal`, which is below the sum of all. `sums` is `tally` of
// `start`.
fn pass_goal(lane: u32, row: u32, start: Prefix, sums: Sum, by_count: bool, goal: vec2<u32>) -> Found {
    var prefix = start;
    var mine = sums;
    var rest = goal;
    var sum = vec2(0u, 0u);
    var alone = false;
    while prefix.level < LEVELS && !alone {
        let upto = scan(lane, mine);
        let under = Sum(wide_difference(upto.weight, mine.weight), upto.count - mine.count);
        let low = select(under.weight, vec2(under.count, 0u), by_count);
        let high = select(upto.weight, vec2(upto.count, 0u), by_count);
        if !wide_less(rest, low) && wide_less(rest, high) {
            chosen[0] = under.weight.x;
            chosen[1] = under.weight.y;
            chosen[2] = under.count;
            chosen[3] = mine.count;
            chosen[4] = lane;
        }
        workgroupBarrier();
        let skipped = Sum(vec2(chosen[0], chosen[1]), chosen[2]);
        alone = chosen[3] == 1u;
        prefix = with_digit(prefix, chosen[4]);
        workgroupBarrier();
        sum = wide_sum(sum, skipped.weight);
        rest = wide_difference(rest, select(skipped.weight, vec2(skipped.count, 0u), by_count));
        if prefix.level < LEVELS && !alone {
            mine = tally(lane, row, prefix);
        }
    }
    var place = vec2(prefix.rank, prefix.id);
    if prefix.level < LEVELS {
        place = only(lane, row, prefix);
    }
    return Found(place, wide_sum(sum, candidate(place).weight));
}

// The only candidate of a prefix.
fn only(lane: u32, row: u32, prefix: Prefix) -> vec2<u32> {
    for (var i = lane; i < items; i += 1024u) {
        let a = item(row, i);
        let b = item(row, i + 256u);
        let c = item(row, i + 512u);
        let d = item(row, i + 768u);
        tell_if(a, prefix);
        tell_if(b, prefix);
        tell_if(c, prefix);
        tell_if(d, prefix);
    }
    workgroupBarrier();
    let place = vec2(chosen[0], chosen[1]);
    workgroupBarrier();
    return place;
}

fn tell_if(place: vec2<u32>, prefix: Prefix) {
    if place.x == UNORDERED || !agrees(prefix, in_order(place)) {
        return;
    }
    if candidate(place).count == 1u {
        chosen[0] = place.x;
        chosen[1] = place.y;
    }
}
