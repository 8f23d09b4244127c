//! Experts as one operator: from tokens, ids and weights to the layer's result.
//!
//! `out[t] = Σ_s weights[t, s] · E[ids[t, s]](x[t]) + g[t] · S(x[t]) + residual[t]`, where an expert `E` is
//! `down(glu(gate_up(x)))` with biases after either product, `S` is the shared expert that every token goes to, and `g`
//! is 1 or the sigmoid of the token's product with a vector (Qwen2-MoE, arXiv:2407.10671). Slots are added in ascending
//! order, as [`CombineArgs`](super::CombineArgs) does; then the shared expert's result, then the residual.
//!
//! With [`RouterWeightOn::Input`] it is `E(weights[t, s] · x[t])`, and the sum has no weights (Llama 4). Only local
//! experts contribute: summed over ranks that split the experts, the results are the whole layer's.
//!
//! Experts are weights of linear layers in any format, packed one by one by [`FeedForward::gate_up`] and
//! [`FeedForward::down`], for activations of any format. Rows are quantised before either product, as
//! [`quantize`](crate::quantize) does it:
//!
//! - INT8 per token without outlier columns: the tokens before they go to their experts, a router's weight on the input
//!   multiplying their scale; and what the function between the layers gives, unrounded;
//! - every other format: each expert's rows by themselves, after a router's weight on the input and the function between
//!   the layers, rounded to the type of `x` and to [`FeedForward::gate_up`]'s output. So one dynamic scale "for all rows" is
//!   one for all rows of an expert, which depends on which tokens it gets; a static one is given for each expert, and so
//!   are outlier columns ([`LayerInputs`]).

mod args;
mod network;
mod row_memory;
mod spec;
mod weights;

pub use args::ExpertsArgs;
pub use network::{FeedForward, is_sent_as_int8};
pub use row_memory::RowMemory;
pub use spec::{ExpertsSpec, MoePlan, RouterWeightOn};
pub use weights::{ExpertWeights, LayerInputs, SharedWeights};

use crate::check::Check;

const CHECK: Check = Check("moe");
