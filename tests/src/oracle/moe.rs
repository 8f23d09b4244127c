//! Mixture of experts; formulas from `halite_kernels::moe`.

pub mod experts;
pub mod permutation;
pub mod quantised;
pub mod routing;
