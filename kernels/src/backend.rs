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
use halite_hal::{DType, Device, Error, Result};
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

/// The answer of a kernel that takes every floating-point type, and nothing else.
pub fn float_only(dtype: DType) -> Support {
    if dtype.is_float() {
        Support::Native
    } else {
        Support::No(format!("{dtype} is not a floating-point type"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_all_that_is_float() {
        for dtype in [DType::F32, DType::F16, DType::Bf16] {
            assert_eq!(float_only(dtype), Support::Native, "{dtype}");
        }
        for dtype in [DType::I8, DType::U8, DType::I32] {
            assert!(matches!(float_only(dtype), Support::No(reason) if reason.contains(&dtype.to_string())));
        }
    }
}
