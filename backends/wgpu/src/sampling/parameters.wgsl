// How a row is sampled: its words in the table, `SamplingParams::words`.

const ROW_WORDS: u32 = 9u;
const BEFORE: u32 = 0u;
const SCALE: u32 = 1u;
const TOP_K: u32 = 2u;
const TOP_P: u32 = 3u;
const MIN_P: u32 = 4u;
const UNIFORM: u32 = 5u;
const ACCEPTANCE: u32 = 6u;
const RESIDUAL: u32 = 7u;
const DRAFT: u32 = 8u;

fn parameter(row: u32, word: u32) -> u32 {
    return table(row * ROW_WORDS + word);
}

// Whether the row is drawn from, and not its first candidate taken.
fn is_drawn(row: u32, first: vec2<u32>) -> bool {
    return parameter(row, SCALE) != 0u && has_weights(first.x);
}

fn weigh_row(row: u32, first: vec2<u32>) {
    weigh_from(first.x, bitcast<f32>(parameter(row, BEFORE)), bitcast<f32>(parameter(row, SCALE)));
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
