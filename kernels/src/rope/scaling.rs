//! How frequencies are stretched for contexts longer than the trained one.

use super::{CHECK, RopeSpec};
use halite_hal::Result;
use std::f64::consts::TAU;

/// How frequencies are stretched.
///
/// Dynamic NTK, whose base grows with the longest sequence of a batch, is none of these: a key's rotation would depend
/// on its neighbours, and keys in the cache would keep an older base. A caller who wants it passes
/// [`CosSin`](super::CosSin).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RopeScaling {
    /// Not at all.
    None,
    /// `freq / factor` (Chen et al. 2023, arXiv:2306.15595).
    Linear {
        /// Above 0; 1 changes nothing.
        factor: f32,
    },
    /// NTK-aware: the base is `theta · factor^(d / (d - 2))`, `d` being `rotary_dim`, so that the lowest frequency is
    /// divided by `factor` and the highest stays (described in arXiv:2309.00071, section 3.1). A single pair stays.
    Ntk {
        /// Above 0; 1 changes nothing.
        factor: f32,
    },
    /// YaRN.
    Yarn(Yarn),
    /// Llama 3.1's: low frequencies divided by `factor`, high ones kept, smooth between.
    Llama3 {
        /// Divisor of the low frequencies.
        factor: f32,
        /// Wavelengths above `original_context / low_freq_factor` are stretched in full.
        low_freq_factor: f32,
        /// Wavelengths below `original_context / high_freq_factor` are kept.
        high_freq_factor: f32,
        /// The trained context, in tokens.
        original_context: u32,
    },
    /// `freq_i / divisors[i]`: LongRoPE (Ding et al. 2024, arXiv:2402.13753), with a plan for its short and one for its
    /// long divisors; `rope_freqs` of GGUF files.
    PerPair {
        /// `[rotary_dim / 2]`
        divisors: Vec<f32>,
        /// Factor of cosines and sines. LongRoPE: `√(1 + ln(factor) / ln(original context))`.
        attention_factor: f32,
    },
}

/// YaRN (Peng et al. 2023, arXiv:2309.00071): `freq · (1 - ramp + ramp / factor)`, cosines and sines times
/// `attention_factor`.
///
/// The ramp is linear in the pair's number, as in the authors' code and in the models made with it, not in its turns as
/// in the paper: `ramp(i) = clamp((i - low) / (high - low), 0, 1)`. `low` and `high` are the pairs that turn `beta_fast`
/// and `beta_slow` times within the trained context, `pair(beta) = d/2 · ln(original_context / (2π · beta)) / ln(theta)`,
/// rounded as `bounds` says; then `low` at least 0, `high` at most `d - 1` and at least 0.001 above `low`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Yarn {
    /// Divisor of the low frequencies.
    pub factor: f32,
    /// The trained context, in tokens.
    pub original_context: u32,
    /// Pairs that turn more often than this within the trained context are kept.
    pub beta_fast: f32,
    /// Pairs that turn less often than this are divided by `factor`.
    pub beta_slow: f32,
    /// Factor of cosines and sines: `mscale`.
    pub attention_factor: f32,
    /// The ramp's ends.
    pub bounds: YarnBounds,
}

/// How the ends of YaRN's ramp are rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum YarnBounds {
    /// To whole pairs, `low` down and `high` up.
    Whole,
    /// Not at all (`truncate: false`; gpt-oss).
    Exact,
}

impl Yarn {
    /// The paper's constants: betas 32 and 1, attention factor `0.1 ln(factor) + 1`, whole bounds.
    pub fn new(factor: f32, original_context: u32) -> Self {
        let attention_factor = (0.1 * f64::from(factor.max(1.0)).ln() + 1.0) as f32;
        let (beta_fast, beta_slow) = (32.0, 1.0);
        let bounds = YarnBounds::Whole;
        Yarn { factor, original_context, beta_fast, beta_slow, attention_factor, bounds }
    }

    /// Another ramp.
    pub fn with_betas(mut self, fast: f32, slow: f32) -> Self {
        (self.beta_fast, self.beta_slow) = (fast, slow);
        self
    }

    /// Another factor of cosines and sines. DeepSeek's models give `(0.1 a ln(factor) + 1) / (0.1 b ln(factor) + 1)` with
    /// `a` their `mscale` and `b` their `mscale_all_dim`.
    pub fn with_attention_factor(mut self, attention_factor: f32) -> Self {
        self.attention_factor = attention_factor;
        self
    }

    /// Other ends of the ramp.
    pub fn with_bounds(mut self, bounds: YarnBounds) -> Self {
        self.bounds = bounds;
        self
    }

    /// How much of a pair is divided, from 0 to 1.
    fn ramp(&self, pair: usize, rotary_dim: usize, theta: f64) -> f64 {
        let at = |beta: f32| {
            let turns = f64::from(self.original_context) / (TAU * f64::from(beta));
            rotary_dim as f64 / 2.0 * turns.ln() / theta.ln()
        };
        let (mut low, mut high) = (at(self.beta_fast), at(self.beta_slow));
        if self.bounds == YarnBounds::Whole {
            (low, high) = (low.floor(), high.ceil());
        }
        low = low.max(0.0);
        high = high.min(rotary_dim as f64 - 1.0).max(low + 0.001);
        ((pair as f64 - low) / (high - low)).clamp(0.0, 1.0)
    }
}

pub(super) fn usable(value: f32) -> bool {
    value.is_finite() && value > 0.0
}

impl RopeScaling {
    pub(super) fn check(&self, spec: &RopeSpec) -> Result<()> {
        let valid = match *self {
            RopeScaling::None => true,
            RopeScaling::Linear { factor } | RopeScaling::Ntk { factor } => usable(factor),
            RopeScaling::Yarn(yarn) => {
                // The ramp divides by the base's logarithm.
                CHECK.that(spec.theta > 1.0, "theta", "above 1 for YaRN", spec.theta)?;
                usable(yarn.factor)
                    && usable(yarn.beta_slow)
                    && usable(yarn.beta_fast)
                    && yarn.beta_fast > yarn.beta_slow
                    && usable(yarn.attention_factor)
                    && yarn.original_context > 0
            }
            RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context } => {
                usable(factor)
                    && usable(low_freq_factor)
                    && usable(high_freq_factor)
                    && high_freq_factor > low_freq_factor
                    && original_context > 0
            }
            RopeScaling::PerPair { ref divisors, attention_factor } => {
                let (pairs, got) = (spec.rotary_dim / 2, divisors.len());
                CHECK.that(got == pairs, "scaling", format!("a divisor for each of {pairs} pairs"), got)?;
                divisors.iter().all(|&divisor| usable(divisor)) && usable(attention_factor)
            }
        };
        CHECK.that(valid, "scaling", "positive, finite factors, slow below fast, low below high", self)
    }

    /// The frequency of one pair, in f64.
    pub(super) fn frequency(&self, pair: usize, rotary_dim: usize, theta: f32) -> f64 {
        let (theta, dim) = (f64::from(theta), rotary_dim as f64);
        let of_base = |base: f64| base.powf(-2.0 * pair as f64 / dim);
        let freq = of_base(theta);
        match *self {
            RopeScaling::None => freq,
            RopeScaling::Linear { factor } => freq / f64::from(factor),
            RopeScaling::Ntk { .. } if rotary_dim <= 2 => freq,
            RopeScaling::Ntk { factor } => of_base(theta * f64::from(factor).powf(dim / (dim - 2.0))),
            RopeScaling::Yarn(yarn) => {
                let ramp = yarn.ramp(pair, rotary_dim, theta);
                freq * (1.0 - ramp + ramp / f64::from(yarn.factor))
            }
            RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context } => {
                let turns = f64::from(original_context) * freq / TAU;
                let (low, high) = (f64::from(low_freq_factor), f64::from(high_freq_factor));
                // 0 below `low` turns in the trained context, 1 above `high`.
                let keep = ((turns - low) / (high - low)).clamp(0.0, 1.0);
                freq * (keep + (1.0 - keep) / f64::from(factor))
            }
            RopeScaling::PerPair { ref divisors, .. } => {
                freq / divisors.get(pair).map_or(1.0, |&divisor| f64::from(divisor))
            }
        }
    }

    pub(super) fn attention_factor(&self) -> f32 {
        match self {
            RopeScaling::Yarn(yarn) => yarn.attention_factor,
            RopeScaling::PerPair { attention_factor, .. } => *attention_factor,
            _ => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rope::RopeStyle;

    fn scaled(scaling: RopeScaling) -> Vec<f64> {
        RopeSpec::new(128, RopeStyle::HalfSplit, 1).with_theta(500_000.0).with_scaling(scaling).frequencies()
    }

    #[test]
    fn llama3_keeps_high_frequencies_and_stretches_low_ones() {
        let plain = scaled(RopeScaling::None);
        let llama3 = scaled(RopeScaling::Llama3 {
            factor: 8.0,
            low_freq_factor: 1.0,
            high_freq_factor: 4.0,
            original_context: 8192,
        });
        for (pair, (plain, scaled)) in plain.iter().zip(&llama3).enumerate() {
            let wavelength = std::f64::consts::TAU / plain;
            if wavelength < 8192.0 / 4.0 {
                assert_eq!(scaled, plain, "pair {pair}");
            } else if wavelength > 8192.0 {
                assert!((scaled * 8.0 / plain - 1.0).abs() < 1e-12, "pair {pair}");
            } else {
                assert!(*scaled < *plain && *scaled > plain / 8.0, "pair {pair}");
            }
        }
        assert!(llama3.is_sorted_by(|a, b| a > b), "the order of frequencies stays");
    }

    #[test]
    fn linear_scaling_divides() {
        let halved: Vec<f64> = scaled(RopeScaling::None).iter().map(|freq| freq / 2.0).collect();
        assert_eq!(scaled(RopeScaling::Linear { factor: 2.0 }), halved);
    }

    #[test]
    fn ntk_keeps_the_highest_frequency_and_divides_the_lowest() {
        let (plain, ntk) = (scaled(RopeScaling::None), scaled(RopeScaling::Ntk { factor: 4.0 }));
        assert_eq!(ntk[0], plain[0]);
        assert!((ntk[63] * 4.0 / plain[63] - 1.0).abs() < 1e-12);
        let single = RopeSpec::new(2, RopeStyle::HalfSplit, 1).with_scaling(RopeScaling::Ntk { factor: 4.0 });
        assert_eq!(single.frequencies(), [1.0]);
    }

    /// Ends of the ramp for 128 elements, base 500,000, 8,192 tokens: pairs 18.1 and 35.0 turn 32 times and once.
    #[test]
    fn yarn_ramps_between_its_bounds() {
        let plain = scaled(RopeScaling::None);
        let yarn = Yarn::new(16.0, 8192);
        assert!((yarn.attention_factor - 1.277_258_9).abs() < 1e-6);
        let whole = scaled(RopeScaling::Yarn(yarn));
        let exact = scaled(RopeScaling::Yarn(yarn.with_bounds(YarnBounds::Exact)));
        assert_eq!(whole[..19], plain[..19]);
        assert!(whole[19] < plain[19] && exact[18] == plain[18] && exact[19] < plain[19]);
        assert!(
            whole[36..]
                .iter()
                .zip(&plain[36..])
                .all(|(yarn, plain)| (yarn * 16.0 / plain - 1.0).abs() < 1e-12)
        );
    }

    #[test]
    fn divisors_divide() {
        let (divisors, attention_factor) = ((1..=64).map(|i| i as f32).collect(), 1.19);
        let scaled = scaled(RopeScaling::PerPair { divisors, attention_factor });
        let plain = self::scaled(RopeScaling::None);
        assert!(
            scaled
                .iter()
                .zip(&plain)
                .enumerate()
                .all(|(i, (scaled, plain))| *scaled == plain / (i + 1) as f64)
        );
    }
}
