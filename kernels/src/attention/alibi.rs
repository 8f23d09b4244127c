//! Attention with linear biases.

/// The slopes of the paper for any number of heads (Press et al. 2021, arXiv:2108.12409, section 3): for `n` heads, a
/// power of two, `2^(-8 h / n)` for `h` in `1..=n`; for others those of the next lower power of two, and then every
/// second one of twice that, from the first on.
pub fn alibi_slopes(query_heads: usize) -> Vec<f32> {
    let whole = if query_heads == 0 { 0 } else { 1 << query_heads.ilog2() };
    let slope = |h: usize, of: usize| (-8.0 * h as f64 / of as f64).exp2() as f32;
    let further = (0..query_heads - whole).map(|h| slope(2 * h + 1, 2 * whole));
    (1..=whole).map(|h| slope(h, whole)).chain(further).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_are_the_papers() {
        assert_eq!(alibi_slopes(0), []);
        assert_eq!(alibi_slopes(1), [2f32.powi(-8)]);
        let eight: Vec<f32> = (1..=8).map(|h| 2f32.powi(-h)).collect();
        assert_eq!(alibi_slopes(8), eight);
        let between = [2f32.powf(-0.5), 2f32.powf(-1.5), 2f32.powf(-2.5), 2f32.powf(-3.5)];
        assert_eq!(alibi_slopes(12), [&eight[..], &between].concat());
    }
}
