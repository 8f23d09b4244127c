//! How one row is sampled, and what decides its draws.

use super::CHECK;
use halite_hal::Result;

/// How one row is sampled.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SamplingParams {
    /// 0 for greedy; otherwise the divisor of the logits.
    pub temperature: f32,
    /// Candidates kept; 0 for all.
    pub top_k: u32,
    /// Probability mass kept, in (0, 1].
    pub top_p: f32,
    /// Smallest probability kept, relative to the largest, in [0, 1].
    pub min_p: f32,
    /// The row's seed.
    pub seed: u64,
    /// The place of the token in its sequence: with the seed it decides the draw.
    pub position: u64,
}

impl SamplingParams {
    /// The most likely token.
    pub fn greedy() -> Self {
        SamplingParams { temperature: 0.0, top_k: 0, top_p: 1.0, min_p: 0.0, seed: 0, position: 0 }
    }

    /// Drawn at this temperature with this seed.
    pub fn seeded(temperature: f32, seed: u64) -> Self {
        SamplingParams { temperature, seed, ..SamplingParams::greedy() }
    }

    /// Keeps `top_k` candidates; 0 for all.
    pub fn with_top_k(mut self, top_k: u32) -> Self {
        self.top_k = top_k;
        self
    }

    /// Keeps this probability mass.
    pub fn with_top_p(mut self, top_p: f32) -> Self {
        self.top_p = top_p;
        self
    }

    /// Keeps probabilities of at least `min_p` times the largest.
    pub fn with_min_p(mut self, min_p: f32) -> Self {
        self.min_p = min_p;
        self
    }

    /// The token's place in its sequence.
    pub fn at(mut self, position: u64) -> Self {
        self.position = position;
        self
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// A value outside the range that its field names.
    pub fn check(&self) -> Result<()> {
        let temperature = self.temperature;
        CHECK.that(temperature.is_finite() && temperature >= 0.0, "temperature", "0 or more", temperature)?;
        CHECK.that(self.top_p > 0.0 && self.top_p <= 1.0, "top_p", "above 0, up to 1", self.top_p)?;
        CHECK.that((0.0..=1.0).contains(&self.min_p), "min_p", "0 to 1", self.min_p)
    }
}

/// The draw of a row: uniform in [0, 1) with 24 bits, by two rounds of SplitMix64 (Steele et al. 2014).
pub fn uniform(seed: u64, position: u64) -> f32 {
    (mix(mix(seed) ^ position) >> 40) as f32 / (1u64 << 24) as f32
}

/// The draw that accepts or rejects a drafted token, independent of [`uniform`]'s: `uniform(mix(seed) + 1, position)`,
/// where `mix` is one round and the sum wraps.
pub fn acceptance_uniform(seed: u64, position: u64) -> f32 {
    uniform(mix(seed).wrapping_add(1), position)
}

/// The draw of the token in place of a rejected one, independent of both: `uniform(mix(seed) + 2, position)`. Were it
/// [`uniform`]'s, it would be the very draw that a draft with this seed was made by.
pub fn residual_uniform(seed: u64, position: u64) -> f32 {
    uniform(mix(seed).wrapping_add(2), position)
}

fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_uniform_and_depend_on_seed_and_position() {
        let draws: Vec<f32> = (0..4096).map(|position| uniform(7, position)).collect();
        assert!(draws.iter().all(|draw| (0.0..1.0).contains(draw)));
        // 16 bins of 256 expected draws each; 5 standard deviations are 80.
        for bin in 0..16 {
            let count = draws.iter().filter(|&&draw| (draw * 16.0) as usize == bin).count();
            assert!((176..=336).contains(&count), "bin {bin}: {count}");
        }
        assert_ne!(uniform(7, 0), uniform(8, 0));
        assert_ne!(uniform(0, 1), uniform(1, 0), "seed and position are not interchangeable");
        // The contract's own numbers: a backend that draws others breaks every stored seed.
        assert_eq!([uniform(0, 0), uniform(42, 7)], [0.652_448_5, 0.086_031_735]);
    }

    #[test]
    fn parameters_out_of_range_are_named() {
        let greedy = SamplingParams::greedy;
        for (params, argument) in [
            (SamplingParams { temperature: -1.0, ..greedy() }, "temperature"),
            (SamplingParams { temperature: f32::NAN, ..greedy() }, "temperature"),
            (greedy().with_top_p(0.0), "top_p"),
            (greedy().with_top_p(f32::NAN), "top_p"),
            (greedy().with_min_p(1.5), "min_p"),
        ] {
            let error = params.check().unwrap_err();
            assert!(
                matches!(error, crate::Error::Argument { argument: found, .. } if found == argument),
                "{error}"
            );
        }
        assert!(greedy().check().is_ok());
    }
}
