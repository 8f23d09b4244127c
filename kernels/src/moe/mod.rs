//! Mixture of experts: routing, the permutation to experts and back, and experts as one operator.
//!
//! A layer sends each token to `top_k` of its experts and adds up what they answer (Shazeer et al. 2017,
//! arXiv:1701.06538):
//!
//! 1. [`Moe::route`]: a row of logits gives `top_k` distinct ids and their weights ([`RoutingSpec`]).
//! 2. [`Moe::moe`]: tokens, ids and weights give the layer's result ([`ExpertsSpec`]).
//!
//! Where experts live on several devices, the second step's parts are operators of their own: [`Moe::dispatch`], a
//! [`grouped`](crate::grouped) product, [`Moe::combine`].
//!
//! Ids are born on the device, so they are never trusted: an id outside the experts that a call serves contributes
//! nothing.

mod dispatch;
mod experts;
mod routing;

pub use dispatch::{CombineArgs, DispatchArgs, LocalExperts};
pub use experts::{
    ExpertWeights, ExpertsArgs, ExpertsSpec, FeedForward, LayerInputs, MoePlan, RouterWeightOn, RowMemory,
    SharedWeights, is_sent_as_int8,
};
pub use routing::{ExpertGroups, GroupScore, RouterWeights, RoutingArgs, RoutingSpec, Scoring};

use crate::{
    Checked, Support,
    linear::{ActivationFormat, Linear},
};
use halite_hal::Result;

/// The family's trait.
pub trait Moe: Linear {
    /// Memory for a number of tokens, in which [`Moe::moe`] works.
    type MoePlan: MoePlan + std::fmt::Debug + Send + Sync + 'static;

    /// Whether and how the backend routes by `spec`.
    fn routing_supports(&self, spec: &RoutingSpec) -> Support;

    /// Scratch bytes of routing up to `max_tokens` rows: exact, or a bound where a vendor decides.
    fn routing_workspace(&self, spec: &RoutingSpec, max_tokens: usize) -> u64;

    /// Chooses experts.
    ///
    /// # Errors
    /// An unsupported spec, or the device's.
    fn route(&self, stream: &mut Self::Stream, args: Checked<RoutingArgs<'_, Self>>) -> Result<()>;

    /// Whether and how the backend dispatches and combines rows of this format.
    fn permutation_supports(&self, rows: ActivationFormat) -> Support;

    /// Copies rows to where their experts' rows lie.
    ///
    /// # Errors
    /// An unsupported format, or the device's.
    fn dispatch(&self, stream: &mut Self::Stream, args: Checked<DispatchArgs<'_, Self>>) -> Result<()>;

    /// Adds up each token's rows.
    ///
    /// # Errors
    /// An unsupported format, or the device's.
    fn combine(&self, stream: &mut Self::Stream, args: Checked<CombineArgs<'_, Self>>) -> Result<()>;

    /// Whether and how the backend runs `spec`.
    fn moe_supports(&self, spec: &ExpertsSpec) -> Support;

    /// Allocates what up to `max_tokens` tokens need. Layers of one spec share a plan, one call after the other: it is memory
    /// to work in, so streams that run at the same time have a plan each.
    ///
    /// # Errors
    /// An unsupported spec, more rows than can be counted, or no memory.
    fn moe_plan(&self, spec: &ExpertsSpec, max_tokens: usize) -> Result<Self::MoePlan>;

    /// Scratch bytes of a call, beside the plan's own memory: exact, or a bound where a vendor decides.
    fn moe_workspace(
        &self,
        plan: &Self::MoePlan,
        experts: ExpertWeights<'_, Self>,
        shared: Option<SharedWeights<'_, Self>>,
    ) -> u64;

    /// Runs it.
    ///
    /// # Errors
    /// The device's.
    fn moe(&self, stream: &mut Self::Stream, args: Checked<ExpertsArgs<'_, Self>>) -> Result<()>;
}
