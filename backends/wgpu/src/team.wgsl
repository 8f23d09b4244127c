// Rows by teams: ROW_LANES invocations of a workgroup's 256 share a row. How many depends on the columns alone, and so does
// the order of every sum.

struct Place {
    outer: u32,
    inner: u32,
    // Which of the team this is.
    lane: u32,
    // False beyond the last row: such a team computes the first row again, for barriers' sake, and writes nothing.
    there: bool,
}

fn place_of(group: u32, lane: u32) -> Place {
    let row = group * (256u / ROW_LANES) + lane / ROW_LANES;
    let there = row < im.rows;
    let at = select(0u, row, there);
    return Place(at / im.inner, at % im.inner, lane % ROW_LANES, there);
}

// A column and the three that are `step` further each, none beyond the last: what a turn of a loop reads at once.
fn four_columns(first: u32, step: u32, last: u32) -> vec4<u32> {
    return min(vec4(first) + step * vec4(0u, 1u, 2u, 3u), vec4(last));
}

var<workgroup> team_words: array<vec4<u32>, 256>;

// How many of a team of `width` have the sums that all add up then: about its root.
fn few_of(width: u32) -> u32 {
    return 1u << ((countTrailingZeros(width) + 1u) / 2u);
}

// The sum over each team of `width`, a power of two, to all of it.
fn team_sum(lane: u32, width: u32, value: vec4<f32>) -> vec4<f32> {
    let first = lane / width * width;
    let few = few_of(width);
    workgroupBarrier();
    team_words[lane] = bitcast<vec4<u32>>(value);
    workgroupBarrier();
    if lane - first < few {
        var part = value;
        for (var other = lane + few; other < first + width; other += few) {
            part += bitcast<vec4<f32>>(team_words[other]);
        }
        team_words[lane] = bitcast<vec4<u32>>(part);
    }
    workgroupBarrier();
    var whole = bitcast<vec4<f32>>(team_words[first]);
    for (var other = first + 1u; other < first + few; other++) {
        whole += bitcast<vec4<f32>>(team_words[other]);
    }
    return whole;
}

// The same of the greatest.
fn team_max(lane: u32, width: u32, value: vec2<u32>) -> vec2<u32> {
    let first = lane / width * width;
    let few = few_of(width);
    workgroupBarrier();
    team_words[lane] = vec4(value, 0u, 0u);
    workgroupBarrier();
    if lane - first < few {
        var part = value;
        for (var other = lane + few; other < first + width; other += few) {
            part = max(part, team_words[other].xy);
        }
        team_words[lane] = vec4(part, 0u, 0u);
    }
    workgroupBarrier();
    var whole = team_words[first].xy;
    for (var other = first + 1u; other < first + few; other++) {
        whole = max(whole, team_words[other].xy);
    }
    return whole;
}
