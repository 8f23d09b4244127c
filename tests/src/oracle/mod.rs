//! The oracle: each operator's formula in f64, two-pass, in plain loops over whole arrays.
//!
//! It shares no algorithm with any kernel: no tiles, no running maxima, no pages. Results are
//! [`Bound`](crate::tolerance::Bound)s: the exact value, and how far a right backend may be from it.

pub mod activation;
pub mod attention;
pub mod cache;
pub mod collectives;
pub mod embedding;
pub mod linear;
pub mod logits;
pub mod mla;
pub mod moe;
pub mod norm;
pub mod quantize;
pub mod rope;
pub mod sampling;
pub mod top_k;
