//! The contracts of Halite's operators.
//!
//! One module a family: what can be asked for (the spec), what is passed (the arguments), the checks that every backend
//! shares, and the trait that a backend implements. A backend accepts [`Checked`] arguments only, and only the checks
//! here make them: a bad shape gets the same typed error everywhere.
//!
//! | family | what it does |
//! |---|---|
//! | [`attention`] | attention over a paged KV cache: prefill, chunks and decode in one call; partial results |
//! | [`linear`] | matrix products with packed weights: F32, F16, BF16, INT8, 4 bits; low-rank adapters |
//! | [`mla`] | multi-head latent attention, absorbed and expanded |
//! | [`quantize`] | rows to I8 and U8, per token, tensor or group; smoothed, rotated, outliers apart |
//! | [`norm`] | RMS and layer norm, with a residual before or after, and quantised results |
//! | [`rope`] | rotary position embedding, also on the way to the cache |
//! | [`activation`] | SiLU, GELU, ReLU, clamped SwiGLU, gated or plain, and quantised results |
//! | [`embedding`] | table look-up by token id; pooling, L2 normalising |
//! | [`cache`] | the paged KV cache: write by slot, copy, swap, import, export |
//! | [`collectives`] | all-reduce, reduce-scatter, all-gather, all-to-all between ranks |
//! | [`logits`] | penalties, biases and grammar masks on logits |
//! | [`grouped`] | rows sorted into groups, each multiplied with weights of its own |
//! | [`moe`] | mixture of experts: routing, the permutation to experts and back, whole layers |
//! | [`sampling`] | greedy and seeded sampling, distributions, log-probabilities, verification of drafts |
//! | [`top_k`] | the greatest or least elements of each row |
//!
//! Shapes are written `[rows, columns]`, outermost first; sizes and lengths are counted in elements unless a unit is
//! named.

pub mod activation;
pub mod attention;
mod backend;
pub mod cache;
mod check;
pub mod collectives;
pub mod embedding;
pub mod grouped;
pub mod linear;
pub mod logits;
pub mod mla;
pub mod moe;
pub mod norm;
pub mod quantize;
pub mod rope;
mod rows;
pub mod sampling;
mod saved;
pub mod top_k;

pub use backend::{Backend, Support, float_only};
pub use check::Checked;
pub use halite_hal as hal;
pub use halite_hal::{DType, Device, Error, Result, Stream, Tensor};
pub use rows::Rows;
pub use saved::saved_weights;
