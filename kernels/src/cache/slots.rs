//! Where the tokens of a step are written.

use super::{CHECK, check_distinct};
use crate::Checked;
use halite_hal::Result;

/// What a backend's slot table tells of itself.
pub trait SlotPlan {
    /// The largest number of tokens of a step.
    fn max_tokens(&self) -> usize;
    /// Token slots of the cache that it was made for.
    fn cache_slots(&self) -> usize;
    /// Tokens of the current step.
    fn tokens(&self) -> usize;

    /// What a step is checked against.
    fn limits(&self) -> SlotLimits {
        SlotLimits { max_tokens: self.max_tokens(), cache_slots: self.cache_slots() }
    }
}

/// What a [`SlotMapping`] was checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlotLimits {
    /// The largest number of tokens of a step.
    pub max_tokens: usize,
    /// Token slots of the cache.
    pub cache_slots: usize,
}

/// Where each token of a step is written.
#[derive(Clone, Copy, Debug)]
pub struct SlotMapping<'a> {
    /// `[tokens]`: a slot of the cache; a negative one is skipped.
    pub slots: &'a [i64],
}

impl SlotMapping<'_> {
    /// Checks the slots against the plan.
    ///
    /// # Errors
    /// More tokens than planned, a slot beyond the cache, or a slot that two tokens share.
    pub fn check(self, plan: &impl SlotPlan) -> Result<Checked<Self, SlotLimits>> {
        CHECK.limit("tokens", self.slots.len(), plan.max_tokens())?;
        for (token, &slot) in self.slots.iter().enumerate() {
            let inside = slot < 0 || (slot as u64) < plan.cache_slots() as u64;
            if !inside {
                let expected = format!("token {token}'s slot below {}", plan.cache_slots());
                return Err(CHECK.wrong("slot_mapping", expected, slot.to_string()));
            }
        }
        let written = self.slots.iter().copied().filter(|&slot| slot >= 0).collect();
        check_distinct("slot_mapping", "slots", written)?;
        Ok(Checked::with_context(self, plan.limits()))
    }
}
