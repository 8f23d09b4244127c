//! The serving engine on top of Halite's kernels.

pub mod gguf;
pub mod schedule;
#[cfg(feature = "store")]
pub mod store;
pub mod text;
