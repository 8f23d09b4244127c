//! Quantisation; formulas from `halite_kernels::quantize`.

/// The documented F32 arithmetic of one row, to the bit, for backends with IEEE division: `(q, scale)`.
pub fn by_the_letter(row: &[f32]) -> (Vec<i8>, f32) {
    if row.iter().any(|x| !x.is_finite()) {
        return (vec![0; row.len()], f32::NAN);
    }
    let largest = row.iter().fold(0f32, |largest, x| largest.max(x.abs()));
    let scale = (largest / 127.0).max(f32::MIN_POSITIVE);
    let inverse = 1.0 / scale;
    let q = row.iter().map(|x| (x * inverse).round_ties_even().clamp(-127.0, 127.0) as i8).collect();
    (q, scale)
}
