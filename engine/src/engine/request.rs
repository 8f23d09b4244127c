//! What is asked of the engine.

use crate::schedule::CacheDomain;
use halite_kernels::sampling::SamplingParams;

/// A prompt to continue, and how.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request {
    /// The prompt's token ids, at least one.
    pub prompt: Vec<u32>,
    /// The most tokens to generate, at least one.
    pub max_tokens: usize,
    /// How tokens are chosen. `position` is set by the engine, so a seed gives the same answer in any batch.
    pub sampling: SamplingParams,
    /// Token ids that end the answer; they are not part of it. Usually the model's own,
    /// [`Engine::stop_tokens`](crate::Engine::stop_tokens).
    pub stop_tokens: Vec<u32>,
    /// Texts that end the answer: at most 64, of 1 to 4096 bytes each. The tokens that spell one count as generated;
    /// its text is left out by [`Engine::generate`](crate::Engine::generate) and
    /// [`AnswerText`](crate::text::AnswerText).
    pub stop_strings: Vec<String>,
    /// Who may share this prompt's KV.
    pub domain: CacheDomain,
}

impl Request {
    /// A greedy request that nothing but `max_tokens` ends, in the default domain.
    pub fn new(prompt: Vec<u32>, max_tokens: usize) -> Self {
        Self {
            prompt,
            max_tokens,
            sampling: SamplingParams::greedy(),
            stop_tokens: Vec::new(),
            stop_strings: Vec::new(),
            domain: CacheDomain::new(),
        }
    }

    /// Sets how tokens are chosen.
    #[must_use]
    pub fn sampling(mut self, sampling: SamplingParams) -> Self {
        self.sampling = sampling;
        self
    }

    /// Sets the token ids that end the answer.
    #[must_use]
    pub fn stop_tokens(mut self, tokens: impl Into<Vec<u32>>) -> Self {
        self.stop_tokens = tokens.into();
        self
    }

    /// Sets the texts that end the answer.
    #[must_use]
    pub fn stop_strings(mut self, strings: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.stop_strings = strings.into_iter().map(Into::into).collect();
        self
    }

    /// Sets who may share this prompt's KV.
    #[must_use]
    pub fn domain(mut self, domain: CacheDomain) -> Self {
        self.domain = domain;
        self
    }
}
