//! Models: hyper-parameters and weights from a file, and the decoder that runs them on any backend.

mod buffers;
mod capacity;
mod config;
mod convert;
mod decoder;
mod error;
mod plans;
mod queue;
mod rope_factors;
mod run;
mod shapes;
mod weights;

pub use config::{ARCHITECTURES, ModelConfig};
pub use error::ModelError;

use crate::gguf::GgufFile;
use crate::runner::Runner;
use crate::{EngineOptions, LoadProgress, Result};
use halite_kernels::Backend;

/// Loads a file's model onto a device: the part of an engine that needs no texts.
///
/// # Errors
/// The model is of an unknown kind or contradicts itself, options do not fit it, the backend does not run it, or the
/// device has no room.
pub fn load_runner<B: Backend>(
    device: B,
    file: &GgufFile,
    options: &EngineOptions,
    progress: &mut dyn FnMut(LoadProgress<'_>),
) -> Result<Box<dyn Runner>> {
    Ok(Box::new(decoder::Decoder::load(device, file, options, progress)?))
}
