//! Mixture of experts: routing, the permutation to experts and back, and experts as one operator.
//!
//! A layer sends each token to `top_k` of its experts and adds up what they answer (Shazeer et al. 2017,
//! arXiv:1701.06538):
//!
//! 1. [`Moe::route`]: a row of logits gives `top_k` distinct ids and their weights ([`RoutingSpec`]).
//!
//! Ids are born on the device, so they are never trusted: an id outside the experts that a call serves contributes
//! nothing.

mod routing;

pub use routing::{ExpertGroups, GroupScore, RouterWeights, RoutingArgs, RoutingSpec, Scoring};

use crate::{Checked, Support};
use halite_hal::{Device, Result};

/// The family's trait.
pub trait Moe: Device {
    /// Whether and how the backend routes by `spec`.
    fn routing_supports(&self, spec: &RoutingSpec) -> Support;

    /// Scratch bytes of routing up to `max_tokens` rows: exact, or a bound where a vendor decides.
    fn routing_workspace(&self, spec: &RoutingSpec, max_tokens: usize) -> u64;

    /// Chooses experts.
    ///
    /// # Errors
    /// An unsupported spec, or the device's.
    fn route(&self, stream: &mut Self::Stream, args: Checked<RoutingArgs<'_, Self>>) -> Result<()>;
}
