//! Rotary position embedding (Su et al. 2021, arXiv:2104.09864), in place or on the way to the KV cache.
//!
//! Pair `i` of the first `rotary_dim` elements of a head is rotated by the angle `position · freq_i`, with
//! `freq_i = theta^(-2i / rotary_dim)` before scaling: `(a, b) → (a cos - b sin, a sin + b cos)`. Elements beyond
//! `rotary_dim` stay. Cosines and sines are made in f64, multiplied by the scaling's attention factor and rounded to F32;
//! the four products and two sums are F32 operations, each rounded by itself.
//!
//! Positions of several axes turn each pair by the axis that the spec names for it.

mod args;
mod scaling;
mod spec;
mod step;
mod turns;

pub use args::{Direction, RopeArgs, RopeWriteArgs};
pub use scaling::{RopeScaling, Yarn, YarnBounds};
pub use spec::{MAX_AXES, MAX_ROTARY_DIM, RopeSpec, RopeStyle};
pub use step::{CosSin, PositionLimits, Positions};
pub use turns::Turns;

use crate::{Checked, Support, cache::KvCacheOps, check::Check};
use halite_hal::Result;

const CHECK: Check = Check("rope");

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
        let spec = self.spec();
        PositionLimits {
            max_tokens: self.max_tokens(),
            max_positions: spec.max_positions,
            axes: spec.axes(),
            pairs: spec.rotary_dim / 2,
        }
    }
}

/// The family's trait.
pub trait Rope: KvCacheOps {
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

    /// Uploads a step's cosines and sines instead.
    ///
    /// # Errors
    /// The device's.
    fn rope_update_cos_sin(
        &self,
        stream: &mut Self::Stream,
        plan: &mut Self::RopePlan,
        tables: &Checked<CosSin<'_>, PositionLimits>,
    ) -> Result<()>;

    /// Rotates the heads.
    ///
    /// # Errors
    /// The device's.
    fn rope(&self, stream: &mut Self::Stream, args: Checked<RopeArgs<'_, Self>>) -> Result<()>;

    /// Rotates the heads and writes keys and values to their slots.
    ///
    /// # Errors
    /// The device's.
    fn rope_cache_write(
        &self,
        stream: &mut Self::Stream,
        args: Checked<RopeWriteArgs<'_, Self>>,
    ) -> Result<()>;
}
