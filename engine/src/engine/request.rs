//! What is asked of the engine.

use crate::schedule::CacheDomain;
use halite_kernels::logits::Penalties;
use halite_kernels::sampling::SamplingParams;
use std::collections::BTreeMap;

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
    /// What tokens of the prompt and of the answer lose.
    pub penalties: Penalties,
    /// What is added to the logits of tokens, at most [`MAX_LOGIT_BIASES`](crate::runner::MAX_LOGIT_BIASES) of them.
    pub logit_bias: BTreeMap<u32, f32>,
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
            penalties: Penalties::NONE,
            logit_bias: BTreeMap::new(),
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

    /// Sets what tokens lose that were there already.
    #[must_use]
    pub fn penalties(mut self, penalties: Penalties) -> Self {
        self.penalties = penalties;
        self
    }

    /// Sets what is added to the logits of tokens.
    #[must_use]
    pub fn logit_bias(mut self, logit_bias: BTreeMap<u32, f32>) -> Self {
        self.logit_bias = logit_bias;
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
