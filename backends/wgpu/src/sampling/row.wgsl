// A row of logits, and its order: by logit, highest first, ties by the lower id, NaN last. One workgroup of 256 works on a
// row, or on a part of one.

// Where NaN ranks.
const UNORDERED: u32 = 0xffffffffu;

// Ascending in the order of candidates; logits that are equal have the same rank.
fn rank_of(bits: u32) -> u32 {
    if (bits & 0x7fffffffu) > 0x7f800000u {
        return UNORDERED;
    }
    if (bits & 0x7fffffffu) == 0u {
        return 0x7fffffffu;
    }
    return select(~bits & 0x7fffffffu, bits, (bits & 0x80000000u) != 0u);
}

// The logit of a rank.
fn bits_of(rank: u32) -> u32 {
    if rank == UNORDERED {
        return 0x7fc00000u;
    }
    return select(~rank & 0x7fffffffu, rank, (rank & 0x80000000u) != 0u);
}

// A rank, and the id below it: what comes first in the order is less.
fn comes_first(a: vec2<u32>, b: vec2<u32>) -> bool {
    return a.x < b.x || (a.x == b.x && a.y < b.y);
}

fn earlier(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return select(b, a, comes_first(a, b));
}

fn place_of(row: u32, id: u32) -> vec2<u32> {
    return vec2(rank_of(logits(row * im.row_stride + id)), id);
}

// Of four ids that are 256 apart: their loads are waited for together. Ids from `end` on come last.
fn places_of(row: u32, id: u32, end: u32) -> array<vec2<u32>, 4> {
    let last = end - 1u;
    let bits = vec4(
        logits(row * im.row_stride + id),
        logits(row * im.row_stride + min(id + 256u, last)),
        logits(row * im.row_stride + min(id + 512u, last)),
        logits(row * im.row_stride + min(id + 768u, last)),
    );
    let none = vec2(UNORDERED, UNORDERED);
    return array<vec2<u32>, 4>(
        vec2(rank_of(bits.x), id),
        select(none, vec2(rank_of(bits.y), id + 256u), id + 256u < end),
        select(none, vec2(rank_of(bits.z), id + 512u), id + 512u < end),
        select(none, vec2(rank_of(bits.w), id + 768u), id + 768u < end),
    );
}

// What lanes tell each other.
var<workgroup> lanes_low: array<u32, 256>;
var<workgroup> lanes_high: array<u32, 256>;

// The first of what the lanes found.
fn first_of_lanes(lane: u32, found: vec2<u32>) -> vec2<u32> {
    lanes_low[lane] = found.x;
    lanes_high[lane] = found.y;
    workgroupBarrier();
    for (var half = 128u; half > 0u; half /= 2u) {
        if lane < half {
            let mine = vec2(lanes_low[lane], lanes_high[lane]);
            let first = earlier(vec2(lanes_low[lane + half], lanes_high[lane + half]), mine);
            lanes_low[lane] = first.x;
            lanes_high[lane] = first.y;
        }
        workgroupBarrier();
    }
    let first = vec2(lanes_low[0], lanes_high[0]);
    // Before the memory is used again.
    workgroupBarrier();
    return first;
}

// The first in the order of ids `start` to `end`, as the whole workgroup finds it.
fn first_of_ids(lane: u32, row: u32, start: u32, end: u32) -> vec2<u32> {
    var found = vec2(UNORDERED, UNORDERED);
    for (var id = start + lane; id < end; id += 1024u) {
        let places = places_of(row, id, end);
        found = earlier(earlier(places[0], places[1]), found);
        found = earlier(earlier(places[2], places[3]), found);
    }
    return first_of_lanes(lane, found);
}
