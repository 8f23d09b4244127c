//! What a backend is: a device with every operator family.

use crate::{
    activation::ActivationOps,
    attention::Attention,
    cache::KvCacheOps,
    collectives::Collectives,
    embedding::Embedding,
    grouped::Grouped,
    linear::{Linear, Lora},
    logits::LogitOps,
    mla::LatentAttention,
    moe::Moe,
    norm::Norm,
    quantize::Quantize,
    rope::Rope,
    sampling::Sampling,
    top_k::TopK,
};
use halite_hal::{Device, Error, Result};
use std::fmt::Debug;

/// Whether a backend runs a specification, and how. Asked of those that make sense: where a specification has a `check`,
/// that says whether it does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Support {
    /// By a kernel of its own.
    Native,
    /// Right, on the same device, made of the same backend's other operators; the text says of which.
    Composed(&'static str),
    /// Not at all; the text says why.
    No(String),
}

impl Support {
    /// Turns `No` into the error that running the specification would give.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the backend cannot run it.
    pub fn require(self, operator: &'static str, device: &impl Device, spec: &dyn Debug) -> Result<()> {
        match self {
            Support::Native | Support::Composed(_) => Ok(()),
            Support::No(reason) => Err(Error::Unsupported {
                operator,
                backend: device.info().backend.to_owned(),
                reason,
                spec: format!("{spec:?}"),
            }),
        }
    }
}

/// A device with every operator family: what a model needs.
pub trait Backend:
    ActivationOps
    + Attention
    + KvCacheOps
    + Collectives
    + Embedding
    + Grouped
    + Linear
    + LogitOps
    + Lora
    + LatentAttention
    + Moe
    + Norm
    + Quantize
    + Rope
    + Sampling
    + TopK
{
}

impl<T> Backend for T where
    T: ActivationOps
        + Attention
        + KvCacheOps
        + Collectives
        + Embedding
        + Grouped
        + Linear
        + LogitOps
        + Lora
        + LatentAttention
        + Moe
        + Norm
        + Quantize
        + Rope
        + Sampling
        + TopK
{
}
