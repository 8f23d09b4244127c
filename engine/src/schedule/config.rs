//! Limits of a scheduler.

use super::block_hash::CacheKey;

/// Whether full blocks are kept and found again by their contents.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PrefixCaching {
    /// Blocks are forgotten when their sequence ends.
    Off,
    /// Prefixes are reused within a [`CacheDomain`](super::CacheDomain), under digests keyed by this secret.
    Keyed(CacheKey),
}

/// What [`Scheduler::new`](super::Scheduler::new) needs to know. All sizes are in tokens, sequences or blocks.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SchedulerConfig {
    /// KV blocks of the device's cache.
    pub blocks: u32,
    /// Tokens a block holds.
    pub block_size: usize,
    /// The most tokens, prompt and answer together, the model can attend to.
    pub max_model_len: usize,
    /// The most tokens one step computes, over all sequences.
    pub max_batch_tokens: usize,
    /// The most sequences that run at once. At most `max_batch_tokens`, so that each can have a token in a step.
    pub max_sequences: usize,
    /// The most tokens of one prompt a step computes: what bounds how long a long prompt delays everybody's next token.
    pub prefill_chunk: usize,
    /// The most sequences that may wait, preempted ones included, when a request is admitted; beyond it, refused.
    pub max_waiting: usize,
    /// Reuse of prefixes.
    pub prefix_caching: PrefixCaching,
}

impl SchedulerConfig {
    /// A scheduler of `blocks` blocks of `block_size` tokens for a model with a context of `max_model_len` tokens:
    /// 2,048 tokens and 64 sequences in a step, 512 tokens of one prompt, 1,024 waiting, no prefix caching.
    pub fn new(blocks: u32, block_size: usize, max_model_len: usize) -> Self {
        Self {
            blocks,
            block_size,
            max_model_len,
            max_batch_tokens: 2048,
            max_sequences: 64,
            prefill_chunk: 512,
            max_waiting: 1024,
            prefix_caching: PrefixCaching::Off,
        }
    }

    /// Sets the most tokens one step computes.
    #[must_use]
    pub fn max_batch_tokens(mut self, tokens: usize) -> Self {
        self.max_batch_tokens = tokens;
        self
    }

    /// Sets the most sequences that run at once.
    #[must_use]
    pub fn max_sequences(mut self, sequences: usize) -> Self {
        self.max_sequences = sequences;
        self
    }

    /// Sets the most tokens of one prompt a step computes.
    #[must_use]
    pub fn prefill_chunk(mut self, tokens: usize) -> Self {
        self.prefill_chunk = tokens;
        self
    }

    /// Sets the most requests that may wait.
    #[must_use]
    pub fn max_waiting(mut self, requests: usize) -> Self {
        self.max_waiting = requests;
        self
    }

    /// Turns prefix caching on, under a secret key.
    #[must_use]
    pub fn prefix_caching(mut self, key: CacheKey) -> Self {
        self.prefix_caching = PrefixCaching::Keyed(key);
        self
    }

    /// Tokens the KV cache holds.
    pub(super) fn kv_capacity(&self) -> usize {
        (self.blocks as usize).saturating_mul(self.block_size)
    }

    /// The longest a sequence can get. Its last token needs no KV, as nothing is computed after it.
    pub(super) fn context_limit(&self) -> usize {
        self.max_model_len.min(self.kv_capacity().saturating_add(1))
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let least = [
            ("blocks", 1, self.blocks as usize),
            ("block_size", 1, self.block_size),
            // One token of prompt and one of answer.
            ("max_model_len", 2, self.max_model_len),
            ("max_batch_tokens", 1, self.max_batch_tokens),
            ("max_sequences", 1, self.max_sequences),
            ("prefill_chunk", 1, self.prefill_chunk),
            ("max_waiting", 1, self.max_waiting),
        ];
        if let Some(&(field, least, got)) = least.iter().find(|(_, least, got)| got < least) {
            return Err(ConfigError::TooSmall { field, least, got });
        }
        if self.max_sequences > self.max_batch_tokens {
            return Err(ConfigError::MoreSequencesThanTokens {
                max_sequences: self.max_sequences,
                max_batch_tokens: self.max_batch_tokens,
            });
        }
        let slots = (self.blocks as usize).checked_mul(self.block_size);
        if slots.is_none_or(|slots| i64::try_from(slots).is_err()) {
            return Err(ConfigError::TooManySlots { blocks: self.blocks, block_size: self.block_size });
        }
        Ok(())
    }
}

/// A scheduler that could not work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A limit under which nothing could run.
    #[error("scheduler: {field} is {got}, expected at least {least}")]
    TooSmall {
        /// The field of [`SchedulerConfig`].
        field: &'static str,
        /// Its least value.
        least: usize,
        /// What it was.
        got: usize,
    },
    /// Not every running sequence could have a token in every step, so that one could starve.
    #[error(
        "scheduler: max_sequences is {max_sequences}, expected at most max_batch_tokens = {max_batch_tokens}; \
         lower the one or raise the other"
    )]
    MoreSequencesThanTokens {
        /// [`SchedulerConfig::max_sequences`].
        max_sequences: usize,
        /// [`SchedulerConfig::max_batch_tokens`].
        max_batch_tokens: usize,
    },
    /// Slots are numbered in `i64`.
    #[error("scheduler: {blocks} blocks of {block_size} tokens have more slots than an i64 numbers")]
    TooManySlots {
        /// [`SchedulerConfig::blocks`].
        blocks: u32,
        /// [`SchedulerConfig::block_size`].
        block_size: usize,
    },
}
