//! An engine from a model file.

use super::Engine;
use crate::model_file::{self, ModelFile};
use crate::{EngineOptions, LoadProgress, Result, model};
use halite_kernels::Backend;
use std::path::Path;

impl Engine {
    /// Loads a model onto a device: the path of a GGUF file or of a safetensors folder. Weights are converted one at a
    /// time: besides them, the KV cache and the mapped file, memory for one of them is needed. Conversion runs in the
    /// calling thread's rayon pool, by default the global one of a thread a core, whatever the device's own threads.
    ///
    /// # Errors
    /// The file cannot be read or is damaged, the model is of an unknown kind or contradicts itself, options do not fit
    /// it, or the device has no room.
    pub fn load<B: Backend>(
        device: B,
        path: impl AsRef<Path>,
        options: &EngineOptions,
        progress: &mut dyn FnMut(LoadProgress<'_>),
    ) -> Result<Self> {
        Self::from_file(device, &*model_file::open(path)?, options, progress)
    }

    /// Loads an open model file.
    ///
    /// # Errors
    /// As [`load`](Self::load), without the file's own.
    pub fn from_file<B: Backend>(
        device: B,
        file: &dyn ModelFile,
        options: &EngineOptions,
        progress: &mut dyn FnMut(LoadProgress<'_>),
    ) -> Result<Self> {
        // Texts first: they are quick, and what is wrong with them should not come after all the weights.
        let texts = file.texts()?;
        let tokens = options.drawn_tokens.unwrap_or(texts.tokenizer().vocab_size());
        let runner = model::load_runner(device, file, &options.clone().drawn_tokens(tokens), progress)?;
        Self::new(runner, texts, options)
    }
}
