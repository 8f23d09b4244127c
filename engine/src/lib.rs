//! The serving engine on top of Halite's kernels.
//!
//! | module | what it does |
//! |---|---|
//! | [`model_file`] | model files of every format: hyper-parameters, tensors, texts |
//! | [`gguf`], [`safetensors`] | the formats |
//! | [`text`] | tokenizers, chat templates, stop strings |
//! | [`model`] | weights on a device, the decoder |
//! | [`weights_cache`] | converted weights, kept for later starts |
//! | [`runner`] | the border between what knows the device and what does not |
//! | [`schedule`] | KV blocks, prefix cache, continuous batching |
#![cfg_attr(feature = "store", doc = "| [`store`] | named models |")]
//!
//! [`Engine`] puts them together.

mod engine;
mod error;
mod folder_files;
pub mod gguf;
mod mapped_file;
pub mod model;
pub mod model_file;
mod options;
mod quoted;
pub mod runner;
pub mod safetensors;
pub mod schedule;
mod siphash;
#[cfg(feature = "store")]
pub mod store;
pub mod text;
pub mod weights_cache;

pub use engine::{Engine, Event, Generation, Request, RequestId};
pub use error::{EngineError, Result};
pub use halite_kernels::{
    attention::{AttentionCompute, ValueProducts},
    cache::KvFormat,
    logits::Penalties,
    sampling::SamplingParams,
};
pub use options::{
    DEFAULT_CONTEXT, DEFAULT_KV_BYTES, EngineOptions, KvCapacity, LoadProgress, LoadStep, WeightsFormat,
};
pub use runner::ModelInfo;
pub use schedule::{FinishReason, Finished, PrefixReuse};
