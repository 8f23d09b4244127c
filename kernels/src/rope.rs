//! Rotary position embedding (Su et al. 2021, arXiv:2104.09864), in place.
//!
//! Pair `i` of the first `rotary_dim` elements of a head turns by `position · freq_i`, with
//! `freq_i = theta^(-2i / rotary_dim)` before scaling: `(a, b) → (a cos - b sin, a sin + b cos)`. Elements beyond
//! `rotary_dim` stay.

use crate::{Checked, Support, check::Check};
use halite_hal::{DType, Device, Result, Tensor};

const CHECK: Check = Check("rope");

/// The largest `rotary_dim`: far beyond every model's, and small enough that a spec alone asks for little memory.
pub const MAX_ROTARY_DIM: usize = 1 << 16;

/// Which two elements make pair `i`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RopeStyle {
    /// `i` and `i + rotary_dim / 2` (Hugging Face's layout).
    HalfSplit,
    /// `2i` and `2i + 1` (the paper's layout, and GGUF's for the Llama family).
    Interleaved,
}

/// How frequencies are stretched for contexts longer than the trained one.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum RopeScaling {
    /// Not at all.
    None,
    /// `freq / factor` (Chen et al. 2023, arXiv:2306.15595).
    Linear {
        /// At least 1.
        factor: f32,
    },
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
}

/// Which rotation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RopeSpec {
    /// Elements of a head.
    pub head_dim: usize,
    /// Elements that turn: even, at most `head_dim`.
    pub rotary_dim: usize,
    /// The pairs.
    pub style: RopeStyle,
    /// The base of the frequencies.
    pub theta: f32,
    /// The stretching.
    pub scaling: RopeScaling,
    /// Positions are below this.
    pub max_positions: usize,
}

impl RopeSpec {
    /// All of a head, base 10,000, no scaling.
    pub fn new(head_dim: usize, style: RopeStyle, max_positions: usize) -> Self {
        let scaling = RopeScaling::None;
        RopeSpec { head_dim, rotary_dim: head_dim, style, theta: 10_000.0, scaling, max_positions }
    }

    /// Another base.
    pub fn with_theta(mut self, theta: f32) -> Self {
        self.theta = theta;
        self
    }

    /// Only the first `rotary_dim` elements.
    pub fn with_rotary_dim(mut self, rotary_dim: usize) -> Self {
        self.rotary_dim = rotary_dim;
        self
    }

    /// Stretched frequencies.
    pub fn with_scaling(mut self, scaling: RopeScaling) -> Self {
        self.scaling = scaling;
        self
    }

    /// Checks that the specification makes sense: a backend calls it before it plans.
    ///
    /// # Errors
    /// An odd `rotary_dim` or one beyond `head_dim` or [`MAX_ROTARY_DIM`], a base or factors that are not positive and finite.
    pub fn check(&self) -> Result<()> {
        let turning = self.rotary_dim;
        CHECK.that(
            turning.is_multiple_of(2) && (1..=self.head_dim).contains(&turning),
            "rotary_dim",
            format!("an even number from 2 to {}", self.head_dim),
            turning,
        )?;
        CHECK.limit("rotary_dim", turning, MAX_ROTARY_DIM)?;
        let usable = |value: f32| value.is_finite() && value > 0.0;
        CHECK.that(usable(self.theta), "theta", "a positive number", self.theta)?;
        let scaling = match self.scaling {
            RopeScaling::None => true,
            RopeScaling::Linear { factor } => usable(factor),
            RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context } => {
                usable(factor)
                    && usable(low_freq_factor)
                    && high_freq_factor > low_freq_factor
                    && original_context > 0
            }
        };
        CHECK.that(scaling, "scaling", "positive factors, low below high", self.scaling)?;
        CHECK.limit("max_positions", self.max_positions, i32::MAX as usize)
    }

    /// The scaled frequencies, `[rotary_dim / 2]`, in f64: every backend makes its tables from these.
    pub fn frequencies(&self) -> Vec<f64> {
        (0..self.rotary_dim / 2)
            .map(|pair| {
                let freq = f64::from(self.theta).powf(-2.0 * pair as f64 / self.rotary_dim as f64);
                match self.scaling {
                    RopeScaling::None => freq,
                    RopeScaling::Linear { factor } => freq / f64::from(factor),
                    RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context } => {
                        let turns = f64::from(original_context) * freq / std::f64::consts::TAU;
                        let (low, high) = (f64::from(low_freq_factor), f64::from(high_freq_factor));
                        // 0 below `low` turns in the trained context, 1 above `high`.
                        let keep = ((turns - low) / (high - low)).clamp(0.0, 1.0);
                        freq * (keep + (1.0 - keep) / f64::from(factor))
                    }
                }
            })
            .collect()
    }
}

/// What a backend's plan tells of itself.
pub trait RopePlan {
    /// What it was planned for.
    fn spec(&self) -> &RopeSpec;
    /// The largest number of tokens of a step.
    fn max_tokens(&self) -> usize;
    /// Tokens of the current step.
    fn tokens(&self) -> usize;

    /// What a step is checked against.
    fn limits(&self) -> PositionLimits {
        PositionLimits { max_tokens: self.max_tokens(), max_positions: self.spec().max_positions }
    }
}

/// What [`Positions`] were checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PositionLimits {
    /// The largest number of tokens of a step.
    pub max_tokens: usize,
    /// Positions are below this.
    pub max_positions: usize,
}

/// The position of each token of a step.
#[derive(Clone, Copy, Debug)]
pub struct Positions<'a> {
    /// `[tokens]`.
    pub positions: &'a [u32],
}

impl Positions<'_> {
    /// Checks the positions against the plan.
    ///
    /// # Errors
    /// More tokens than planned, or a position beyond the spec's.
    pub fn check(self, plan: &impl RopePlan) -> Result<Checked<Self, PositionLimits>> {
        CHECK.limit("tokens", self.positions.len(), plan.max_tokens())?;
        let limit = plan.spec().max_positions;
        if let Some(position) = self.positions.iter().find(|&&position| position as usize >= limit) {
            return Err(CHECK.wrong("positions", format!("positions below {limit}"), position.to_string()));
        }
        Ok(Checked::with_context(self, plan.limits()))
    }
}

/// One call, in place.
#[derive(Clone, Debug)]
pub struct RopeArgs<'a, B: Rope> {
    /// The plan, as last updated.
    pub plan: &'a B::RopePlan,
    /// F32 `[tokens, heads, head_dim]`; outer dimensions may be strided. Query and key heads may lie side by side.
    pub x: &'a Tensor<B>,
}

impl<B: Rope> RopeArgs<'_, B> {
    /// Checks shape and type.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument.
    pub fn check(self) -> Result<Checked<Self>> {
        CHECK.rows("x", self.x, 3)?;
        let dims = [self.plan.tokens(), self.x.dims()[1], self.plan.spec().head_dim];
        CHECK.tensor("x", self.x, DType::F32, &dims)?;
        Ok(Checked::new(self))
    }
}

/// The family's trait.
pub trait Rope: Device {
    /// Tables at stable addresses.
    type RopePlan: RopePlan + std::fmt::Debug + Send + 'static;

    /// Whether and how the backend runs `spec`.
    fn rope_supports(&self, spec: &RopeSpec) -> Support;

    /// Makes the tables for steps of up to `max_tokens` tokens: allocates, once.
    ///
    /// # Errors
    /// A spec that makes no sense or is not supported, or no memory.
    fn rope_plan(&self, spec: &RopeSpec, max_tokens: usize) -> Result<Self::RopePlan>;

    /// Uploads a step's positions: once a step.
    ///
    /// # Errors
    /// The device's.
    fn rope_update(
        &self,
        stream: &mut Self::Stream,
        plan: &mut Self::RopePlan,
        positions: &Checked<Positions<'_>, PositionLimits>,
    ) -> Result<()>;

    /// Turns the heads.
    ///
    /// # Errors
    /// The device's.
    fn rope(&self, stream: &mut Self::Stream, args: Checked<RopeArgs<'_, Self>>) -> Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn specs_that_make_no_sense_are_refused() {
        let spec = || RopeSpec::new(64, RopeStyle::Interleaved, 10);
        let factor = RopeScaling::Linear { factor: 0.0 };
        for bad in [
            spec().with_rotary_dim(0),
            spec().with_rotary_dim(3),
            spec().with_rotary_dim(66),
            RopeSpec::new(1 << 60, RopeStyle::HalfSplit, 10),
            spec().with_theta(0.0),
            spec().with_theta(f32::INFINITY),
            spec().with_scaling(factor),
            RopeSpec { max_positions: usize::MAX, ..spec() },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
        assert!(spec().with_rotary_dim(32).check().is_ok());
    }
}
