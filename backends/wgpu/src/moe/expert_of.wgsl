// The expert that has a row of those sorted by expert; the last one for rows that nobody has.
fn expert_of(row: u32) -> u32 {
    var low = 0u;
    var high = im.experts - 1u;
    while low < high {
        let middle = (low + high + 1u) / 2u;
        if u32(offsets(middle)) <= row {
            low = middle;
        } else {
            high = middle - 1u;
        }
    }
    return low;
}
