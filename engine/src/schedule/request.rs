//! What comes into the scheduler, and why it may be refused.

use super::block_hash::CacheDomain;

/// Whether the KV of a prompt's beginning is kept and reused. It changes no answer, only when it comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PrefixReuse {
    /// Kept as long as nobody needs the memory, reused by requests of the same [`CacheDomain`].
    #[default]
    On,
    /// Nothing is looked up, and everything is forgotten when a request ends.
    Off,
}

/// A prompt to continue.
///
/// Of caching it says only who may share its KV, and whether anybody may: how memory is managed is not a caller's
/// choice.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Request {
    /// The prompt's token ids, at least one.
    pub prompt: Vec<u32>,
    /// The most tokens to generate, at least one.
    pub max_tokens: usize,
    /// Token ids that end the answer; they are not part of it.
    pub stop_tokens: Vec<u32>,
    /// Who may share this prompt's KV.
    pub domain: CacheDomain,
    /// `Off` where every token has to be computed, because something is read from each; it publishes nothing either.
    pub prefix_reuse: PrefixReuse,
}

impl Request {
    /// A request for at most `max_tokens` tokens after `prompt`, with no stop tokens, in the default domain.
    pub fn new(prompt: Vec<u32>, max_tokens: usize) -> Self {
        Self {
            prompt,
            max_tokens,
            stop_tokens: Vec::new(),
            domain: CacheDomain::new(),
            prefix_reuse: PrefixReuse::On,
        }
    }

    /// Sets the token ids that end the answer.
    #[must_use]
    pub fn stop_tokens(mut self, tokens: impl Into<Vec<u32>>) -> Self {
        self.stop_tokens = tokens.into();
        self
    }

    /// Sets who may share this prompt's KV.
    #[must_use]
    pub fn domain(mut self, domain: CacheDomain) -> Self {
        self.domain = domain;
        self
    }

    /// Sets whether this request finds and publishes prefixes.
    #[must_use]
    pub fn prefix_reuse(mut self, reuse: PrefixReuse) -> Self {
        self.prefix_reuse = reuse;
        self
    }
}

/// Why a request was refused. All but [`QueueFull`](Self::QueueFull) are the caller's to correct; none of them
/// touches the requests already admitted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AdmissionError {
    /// There is nothing to continue.
    #[error("the prompt has 0 tokens, expected at least 1")]
    EmptyPrompt,
    /// Nothing was asked for. To score a prompt without generating, this is not the way.
    #[error("max_tokens is 0, expected at least 1")]
    ZeroMaxTokens,
    /// The model's context has no room for the prompt and one token after it.
    #[error("the prompt has {got} tokens, the limit of the model's context is {limit}; shorten the prompt")]
    PromptExceedsContext {
        /// `max_model_len - 1`.
        limit: usize,
        /// Tokens of the prompt.
        got: usize,
    },
    /// The prompt does not fit into the KV cache even when nothing else runs, so it would wait for ever.
    #[error(
        "the prompt has {got} tokens, the KV cache holds {limit} ({blocks} blocks of {block_size}); \
         shorten the prompt or give the cache more blocks"
    )]
    PromptExceedsKvCache {
        /// Tokens the KV cache holds.
        limit: usize,
        /// Tokens of the prompt.
        got: usize,
        /// Blocks of the cache.
        blocks: u32,
        /// Tokens a block holds.
        block_size: usize,
    },
    /// As many requests wait as may; try again later.
    #[error("{limit} requests are waiting, which is the limit (max_waiting); try again later")]
    QueueFull {
        /// [`SchedulerConfig::max_waiting`](super::SchedulerConfig::max_waiting).
        limit: usize,
    },
}
