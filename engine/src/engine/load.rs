//! An engine from a model file.

use super::Engine;
use crate::gguf::GgufFile;
use crate::text::{ChatTemplate, Tokenizer, VocabularySource};
use crate::{EngineOptions, LoadProgress, Result, model};
use halite_kernels::Backend;
use std::path::Path;

impl Engine {
    /// Loads a model file onto a device. Weights are converted one at a time: besides them, the KV cache and the mapped
    /// file, memory for one of them is needed. Conversion runs in the calling thread's rayon pool, by default the
    /// global one of a thread a core, whatever the device's own threads.
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
        Self::from_gguf(device, &GgufFile::open(path)?, options, progress)
    }

    /// Loads an open model file.
    ///
    /// # Errors
    /// As [`load`](Self::load), without the file's own.
    pub fn from_gguf<B: Backend>(
        device: B,
        file: &GgufFile,
        options: &EngineOptions,
        progress: &mut dyn FnMut(LoadProgress<'_>),
    ) -> Result<Self> {
        // Texts first: they are quick, and what is wrong with them should not come after all the weights.
        let metadata = file.metadata();
        let tokenizer = Tokenizer::new(VocabularySource::from_gguf(metadata)?)?;
        let template = metadata.opt_str("tokenizer.chat_template")?.map(ChatTemplate::new).transpose()?;
        let runner = model::load_runner(device, file, options, progress)?;
        Self::new(runner, tokenizer, template, options)
    }
}
