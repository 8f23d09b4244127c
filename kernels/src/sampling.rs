//! Sampling: the next token of each row of logits; and log-probabilities of given tokens.
//!
//! Candidates are ordered by logit, highest first, ties by the lower id; a NaN ranks below -inf. Temperature 0 takes
//! the first. Otherwise, in this order:
//! 1. keep the first `top_k` (0: all), with `p = softmax(logit / temperature)` over those kept;
//! 2. keep the shortest prefix whose sum of `p` reaches `top_p` (Holtzman et al. 2019, arXiv:1904.09751);
//! 3. keep those with `p ≥ min_p · max p` (Nguyen et al. 2024, arXiv:2407.01082);
//! 4. with `u = uniform(seed, position)`, take the first whose running sum exceeds `u` times the sum of those kept.
//!
//! A NaN weighs nothing. A row whose greatest logit is not finite has no weights: its first candidate is taken.
//! The draw depends on the row's own seed and position only: never on the batch.

use crate::{Checked, Support, check::Check};
use halite_hal::{DType, Device, Result, Tensor};

const CHECK: Check = Check("sampling");

/// Over which vocabulary.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SamplingSpec {
    /// Columns of the logits.
    pub vocabulary: usize,
}

impl SamplingSpec {
    /// F32 logits over `vocabulary` tokens.
    pub fn new(vocabulary: usize) -> Self {
        SamplingSpec { vocabulary }
    }

    /// Checks that the specification makes sense.
    ///
    /// # Errors
    /// An empty vocabulary, or one beyond I32 ids.
    pub fn check(&self) -> Result<()> {
        CHECK.positive("vocabulary", self.vocabulary)?;
        CHECK.limit("vocabulary", self.vocabulary, i32::MAX as usize)
    }
}

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
    let mix = |x: u64| {
        let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    };
    (mix(mix(seed) ^ position) >> 40) as f32 / (1u64 << 24) as f32
}

/// What a backend's plan tells of itself.
pub trait SamplingPlan {
    /// What it was planned for.
    fn spec(&self) -> &SamplingSpec;
    /// The largest number of rows.
    fn max_rows(&self) -> usize;
    /// Rows of the current step.
    fn rows(&self) -> usize;

    /// What a step is checked against.
    fn limits(&self) -> SamplingLimits {
        SamplingLimits { max_rows: self.max_rows() }
    }
}

/// What a [`SamplingStep`] was checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SamplingLimits {
    /// The largest number of rows.
    pub max_rows: usize,
}

/// A step's parameters, on the host.
#[derive(Clone, Copy, Debug)]
pub struct SamplingStep<'a> {
    /// `[rows]`.
    pub params: &'a [SamplingParams],
}

impl SamplingStep<'_> {
    /// Checks the parameters against the plan.
    ///
    /// # Errors
    /// More rows than planned, or parameters out of range.
    pub fn check(self, plan: &impl SamplingPlan) -> Result<Checked<Self, SamplingLimits>> {
        CHECK.limit("rows", self.params.len(), plan.max_rows())?;
        self.params.iter().try_for_each(SamplingParams::check)?;
        Ok(Checked::with_context(self, plan.limits()))
    }
}

/// One call: a token for each row.
#[derive(Clone, Debug)]
pub struct SamplingArgs<'a, B: Sampling> {
    /// The plan, as last updated.
    pub plan: &'a B::SamplingPlan,
    /// F32 `[rows, vocabulary]`.
    pub logits: &'a Tensor<B>,
    /// I32 `[rows]`: always within the vocabulary.
    pub ids: &'a Tensor<B>,
}

impl<B: Sampling> SamplingArgs<'_, B> {
    /// Checks shapes and types.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument.
    pub fn check(self) -> Result<Checked<Self>> {
        let rows = self.plan.rows();
        CHECK.tensor("logits", self.logits, DType::F32, &[rows, self.plan.spec().vocabulary])?;
        CHECK.tensor("ids", self.ids, DType::I32, &[rows])?;
        CHECK.disjoint("ids", self.ids, &[("logits", Some(self.logits))])?;
        Ok(Checked::new(self))
    }
}

/// One call: `out[r] = logits[r, targets[r]] - ln Σ exp(logits[r])`; a target outside the vocabulary gives NaN.
#[derive(Clone, Debug)]
pub struct LogProbArgs<'a, D: Device> {
    /// F32 `[rows, vocabulary]`.
    pub logits: &'a Tensor<D>,
    /// I32 `[rows]`.
    pub targets: &'a Tensor<D>,
    /// F32 `[rows]`, natural.
    pub out: &'a Tensor<D>,
}

impl<D: Device> LogProbArgs<'_, D> {
    /// Checks shapes and types.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) naming the argument.
    pub fn check(self) -> Result<Checked<Self>> {
        let rows = CHECK.rows("logits", self.logits, 2)?;
        CHECK.tensor("logits", self.logits, DType::F32, self.logits.dims())?;
        CHECK.tensor("targets", self.targets, DType::I32, &[rows])?;
        CHECK.tensor("out", self.out, DType::F32, &[rows])?;
        CHECK.disjoint("out", self.out, &[("logits", Some(self.logits)), ("targets", Some(self.targets))])?;
        Ok(Checked::new(self))
    }
}

/// The family's trait.
pub trait Sampling: Device {
    /// Parameters at stable addresses.
    type SamplingPlan: SamplingPlan + std::fmt::Debug + Send + 'static;

    /// Whether and how the backend runs `spec`.
    fn sampling_supports(&self, spec: &SamplingSpec) -> Support;

    /// Plans for steps of up to `max_rows` rows: allocates, once.
    ///
    /// # Errors
    /// A spec that makes no sense or is not supported, or no memory.
    fn sampling_plan(&self, spec: &SamplingSpec, max_rows: usize) -> Result<Self::SamplingPlan>;

    /// Uploads a step's parameters: once a step.
    ///
    /// # Errors
    /// The device's.
    fn sampling_update(
        &self,
        stream: &mut Self::Stream,
        plan: &mut Self::SamplingPlan,
        step: &Checked<SamplingStep<'_>, SamplingLimits>,
    ) -> Result<()>;

    /// Takes a token for each row.
    ///
    /// # Errors
    /// The device's.
    fn sample(&self, stream: &mut Self::Stream, args: Checked<SamplingArgs<'_, Self>>) -> Result<()>;

    /// Log-probabilities of given tokens.
    ///
    /// # Errors
    /// The device's.
    fn log_probs(&self, stream: &mut Self::Stream, args: Checked<LogProbArgs<'_, Self>>) -> Result<()>;
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
