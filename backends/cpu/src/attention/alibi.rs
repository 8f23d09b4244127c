//! Linear biases of a row's scores.

use crate::simd::{Isa, Kernel, LANES};

/// A row's bias.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alibi {
    /// What a position's distance costs.
    pub(crate) slope: f32,
    /// The row's position, counted from the part's first.
    pub(crate) own: i64,
}

/// `score - slope · |j - own|`, a product and then a difference, each rounded by itself: what a position gets depends on
/// nothing but its distance. Distances are exact up to 2^24.
pub(crate) struct Bias<'a> {
    pub(crate) alibi: Alibi,
    /// The position of the first score, counted from the part's first.
    pub(crate) first: usize,
    /// Any number of scores.
    pub(crate) scores: &'a mut [f32],
}

impl Kernel for Bias<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Alibi { slope, own } = self.alibi;
        let slope = isa.splat(slope);
        let lanes = isa.load(&std::array::from_fn(|lane| lane as f32));
        for (group, scores) in self.scores.chunks_mut(LANES).enumerate() {
            let first = self.first as i64 + (group * LANES) as i64 - own;
            let distance = isa.abs(isa.add(isa.splat(first as f32), lanes));
            let score = isa.sub(isa.load_partial(scores), isa.mul(slope, distance));
            isa.store_partial(score, scores);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{Tier, random::Random};

    #[test]
    fn each_score_loses_its_distance() {
        let mut random = Random::new(5);
        for tier in Tier::available() {
            for (len, first, own) in [(0, 0, 0), (1, 3, 3), (40, 0, 17), (33, 5, -3000), (17, 2, 1 << 24)] {
                let before = random.floats(len);
                let mut scores = before.clone();
                let alibi = Alibi { slope: 0.3, own };
                tier.run(Bias { alibi, first, scores: &mut scores });
                for (i, (&score, &before)) in scores.iter().zip(&before).enumerate() {
                    let distance = ((first + i) as i64 - own).unsigned_abs();
                    assert_eq!(score, before - 0.3 * distance as f32, "{tier}: {len} from {first} on");
                }
            }
        }
    }
}
