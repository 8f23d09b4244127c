//! Which experts.

use super::{CHECK, FeedForward};
use crate::moe::LocalExperts;
use halite_hal::{DType, Result};

/// What the router's weights multiply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RouterWeightOn {
    /// What the experts give.
    Output,
    /// What the experts get (Llama 4).
    Input,
}

/// Which experts.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ExpertsSpec {
    /// The experts served.
    pub local: LocalExperts,
    /// Experts a token.
    pub top_k: usize,
    /// Each of them.
    pub expert: FeedForward,
    /// The expert that every token goes to.
    pub shared: Option<FeedForward>,
    /// What the router's weights multiply.
    pub router_weight: RouterWeightOn,
    /// Type of `x` and `out`.
    pub dtype: DType,
}

impl ExpertsSpec {
    /// `top_k` experts a token, F32.
    pub fn new(local: LocalExperts, top_k: usize, expert: FeedForward) -> Self {
        let router_weight = RouterWeightOn::Output;
        ExpertsSpec { local, top_k, expert, shared: None, router_weight, dtype: DType::F32 }
    }

    /// A shared expert.
    pub fn with_shared(mut self, shared: FeedForward) -> Self {
        self.shared = Some(shared);
        self
    }

    /// The router's weights elsewhere.
    pub fn with_router_weight(mut self, router_weight: RouterWeightOn) -> Self {
        self.router_weight = router_weight;
        self
    }

    /// Another type of `x` and `out`.
    pub fn with_dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }

    /// Checks that the specification makes sense: a backend calls it before it plans.
    ///
    /// # Errors
    /// Layers that do not fit each other, or a type that is no float.
    pub fn check(&self) -> Result<()> {
        self.local.check(CHECK)?;
        CHECK.positive("top_k", self.top_k)?;
        CHECK.that(self.dtype.is_float(), "dtype", "a floating-point type", self.dtype)?;
        self.expert.check(self.dtype)?;
        let hidden = self.expert.hidden();
        if let Some(shared) = &self.shared {
            shared.check(self.dtype)?;
            CHECK.that(shared.hidden() == hidden, "shared", format!("{hidden} columns"), shared.hidden())?;
            let output = shared.down.output;
            CHECK.that(output == self.dtype, "shared", format!("{} as output", self.dtype), output)?;
        }
        Ok(())
    }

    /// Refuses a number of tokens whose rows cannot be counted.
    ///
    /// # Errors
    /// More than 2^31 - 1 rows of experts, or more bytes of rows than any memory has.
    pub fn check_tokens(&self, max_tokens: usize) -> Result<()> {
        let rows = max_tokens.saturating_mul(self.top_k);
        CHECK.limit("tokens * top_k", rows, i32::MAX as usize)?;
        let widest = self.expert.hidden().max(self.expert.gate_up.out_features);
        let bytes = rows.checked_mul(widest).and_then(|elements| elements.checked_mul(4));
        CHECK.limit("bytes of rows", bytes.unwrap_or(usize::MAX), i64::MAX as usize)
    }
}

/// What a backend's plan tells of itself: memory for up to so many tokens. Layers of one spec share it.
pub trait MoePlan {
    /// What it was planned for.
    fn spec(&self) -> &ExpertsSpec;
    /// The largest number of tokens.
    fn max_tokens(&self) -> usize;
}
