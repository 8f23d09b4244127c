// A candidate weighs what its logit says, and comes in the order of candidates.

fn in_order(place: vec2<u32>) -> vec2<u32> {
    return place;
}

fn candidate(place: vec2<u32>) -> Candidate {
    return Candidate(wide_of(weight_of(place.x), im.bits), 1u);
}
