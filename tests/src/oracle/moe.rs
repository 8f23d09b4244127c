//! Mixture of experts; formulas from `halite_kernels::moe`.

pub mod routing;
