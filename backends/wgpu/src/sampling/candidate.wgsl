// A candidate weighs what its logit says. NaN is none.

fn candidate_rank(row: u32, id: u32) -> u32 {
    return rank_of(logits(row * im.row_stride + id));
}

fn candidate(row: u32, id: u32) -> Candidate {
    let rank = candidate_rank(row, id);
    return Candidate(rank, wide_of(weight_of(rank), im.bits), u32(rank != UNORDERED));
}
