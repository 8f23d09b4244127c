//! The decoder: a model file's weights on a device, run for any family on any backend.

mod adjust;
mod buffers;
mod capacity;
mod convert;
mod decoder;
mod keeping;
mod layer;
mod loader;
mod plans;
mod queue;
mod run;
mod weights;

use crate::model_file::ModelFile;
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
    file: &dyn ModelFile,
    options: &EngineOptions,
    progress: &mut dyn FnMut(LoadProgress<'_>),
) -> Result<Box<dyn Runner>> {
    Ok(Box::new(decoder::Decoder::load(device, file, options, progress)?))
}
