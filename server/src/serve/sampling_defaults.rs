//! How tokens are chosen where a request does not say.

use super::request::Generation;
use halite_engine::SamplingParams;
use halite_engine::model_file::GenerationDefaults;
use std::hash::{BuildHasher, RandomState};

/// What holds where a request does not say: OpenAI's defaults, or what the model's makers recommend.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct SamplingDefaults {
    /// 0 for greedy.
    pub temperature: f32,
    /// Probability mass kept, in (0, 1].
    pub top_p: f32,
    /// Candidates kept; 0 for all.
    pub top_k: u32,
    /// Smallest probability kept, relative to the largest.
    pub min_p: f32,
}

impl Default for SamplingDefaults {
    fn default() -> Self {
        Self { temperature: 1.0, top_p: 1.0, top_k: 0, min_p: 0.0 }
    }
}

impl SamplingDefaults {
    /// OpenAI's: temperature 1, everything kept.
    pub fn new() -> Self {
        Self::default()
    }

    /// What the model's makers recommend, and OpenAI's where they are silent.
    pub fn of_model(makers: &GenerationDefaults) -> Self {
        let openai = Self::default();
        Self {
            temperature: makers.temperature.unwrap_or(openai.temperature),
            top_p: makers.top_p.unwrap_or(openai.top_p),
            top_k: makers.top_k.unwrap_or(openai.top_k),
            min_p: makers.min_p.unwrap_or(openai.min_p),
        }
    }

    /// Sets the temperature.
    #[must_use]
    pub fn temperature(mut self, temperature: f32) -> Self {
        self.temperature = temperature;
        self
    }

    /// Sets the probability mass kept.
    #[must_use]
    pub fn top_p(mut self, top_p: f32) -> Self {
        self.top_p = top_p;
        self
    }

    /// Sets the candidates kept.
    #[must_use]
    pub fn top_k(mut self, top_k: u32) -> Self {
        self.top_k = top_k;
        self
    }

    /// Sets the smallest probability kept.
    #[must_use]
    pub fn min_p(mut self, min_p: f32) -> Self {
        self.min_p = min_p;
        self
    }

    /// The parameters of a request's choices, `n` of them: the first is drawn with the seed asked for (or a random
    /// one), the next with the one after it, and so on.
    pub(super) fn choices(&self, asked: &Generation) -> Vec<SamplingParams> {
        // The standard library seeds `RandomState` from the operating system.
        let first = asked.seed.unwrap_or_else(|| RandomState::new().hash_one(0u8));
        let top_p = asked.top_p.unwrap_or(self.top_p);
        let choice = |index| {
            SamplingParams::seeded(asked.temperature.unwrap_or(self.temperature), first.wrapping_add(index))
                .with_top_k(asked.top_k.unwrap_or(self.top_k))
                // OpenAI allows 0, which keeps one candidate as the smallest number does.
                .with_top_p(if top_p == 0.0 { f32::MIN_POSITIVE } else { top_p })
                .with_min_p(asked.min_p.unwrap_or(self.min_p))
        };
        (0..asked.n as u64).map(choice).collect()
    }
}
