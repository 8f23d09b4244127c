//! What can go wrong in the engine.

use crate::{
    gguf::GgufError,
    model_file::ModelError,
    safetensors::SafetensorsError,
    schedule::{AdmissionError, ConfigError, StepError},
    text::TextError,
    weights_cache::WeightsCacheError,
};

/// `Result` with [`EngineError`].
pub type Result<T> = std::result::Result<T, EngineError>;

/// An error of the engine, with enough in its text to act on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The model file is damaged or is not one.
    #[error(transparent)]
    File(#[from] GgufError),
    /// The folder's safetensors are damaged or missing.
    #[error(transparent)]
    Safetensors(#[from] SafetensorsError),
    /// The file is sound, but the model in it contradicts itself or is of an unknown kind.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Kept weights that cannot be taken. Loading does not fail with it: weights are converted then.
    #[error(transparent)]
    WeightsCache(#[from] WeightsCacheError),
    /// The tokenizer, the chat template, or a text given to them.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The device or one of its operators.
    #[error(transparent)]
    Device(#[from] halite_hal::Error),
    /// A request that cannot be served, now or ever.
    #[error(transparent)]
    Admission(#[from] AdmissionError),
    /// Limits of the scheduler under which nothing could run.
    #[error(transparent)]
    Schedule(#[from] ConfigError),
    /// The engine gave the scheduler results that it had not asked for: a fault of Halite's own.
    #[error("internal: {0}")]
    Step(#[from] StepError),
    /// An option outside its range.
    #[error("option `{option}`: expected {expected}, got {got}")]
    Option {
        /// The field of [`EngineOptions`](crate::EngineOptions).
        option: &'static str,
        /// What works.
        expected: String,
        /// What was given.
        got: String,
    },
    /// A token id that the model does not have.
    #[error(
        "token {index} of the prompt has the id {id}; the model's vocabulary has {vocabulary} ids, from 0 on"
    )]
    UnknownToken {
        /// Its place in the prompt.
        index: usize,
        /// The id.
        id: u32,
        /// Ids of the model.
        vocabulary: usize,
    },
    /// A place in a sequence that is not there, or that does not come after the one before it.
    #[error(
        "position {position} was asked for; expected ascending positions below {tokens}, the number of tokens"
    )]
    UnknownPosition {
        /// The place.
        position: usize,
        /// Tokens of the sequence.
        tokens: usize,
    },
    /// Messages were given to a model without a chat template.
    #[error("the model has no chat template; give it a plain prompt instead")]
    NoChatTemplate,
    /// A request that the engine was waiting for did not finish.
    #[error("the request was not answered: {0}")]
    Unanswered(String),
}

impl EngineError {
    pub(crate) fn option(option: &'static str, expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self::Option { option, expected: expected.into(), got: got.into() }
    }
}
