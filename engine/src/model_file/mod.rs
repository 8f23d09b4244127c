//! Model files of every format behind one door: hyper-parameters, tensors and texts.
//!
//! | format | hyper-parameters | tensors | tokenizer and chat template |
//! |---|---|---|---|
//! | one GGUF file | its metadata | of all its types | its metadata |
//! | a safetensors folder | `config.json` | F32, F16, BF16, and INT8 in the compressed-tensors layout | `tokenizer.json`, `tokenizer_config.json` |
//!
//! ```no_run
//! use halite_engine::model_file;
//!
//! let file = model_file::open("models/SmolLM2-135M-Instruct")?;
//! let config = file.config()?;
//! println!("{}: {} layers of {} elements", config.architecture, config.layers, config.hidden);
//! # Ok::<(), halite_engine::EngineError>(())
//! ```

mod compressed_tensors;
mod config;
mod config_keys;
mod error;
mod family;
mod folder;
mod folder_config;
mod folder_names;
mod four_bit;
mod generation;
mod gguf;
mod gguf_config;
mod json;
mod matrix_format;
mod memory;
mod part;
mod rope_factors;
mod shapes;
mod source_tensor;
mod tensors;
mod texts;

pub use config::{AttentionKind, ModelConfig, RopeConfig};
pub use error::ModelError;
pub use family::ARCHITECTURES;
pub use folder::ModelFolder;
pub use four_bit::{FourBit, FourBitLayer};
pub use generation::GenerationDefaults;
pub(crate) use matrix_format::{GROUP, LayerMatrix, MatrixFormat};
pub use memory::MemoryNeeded;
pub(crate) use part::{ExpertPart, LayerPart, Part};
pub(crate) use source_tensor::SourceTensor;
pub use tensors::StoredTensor;
pub(crate) use tensors::Tensors;
pub use texts::ModelTexts;

use crate::Result;
use crate::gguf::GgufFile;
use std::path::Path;

/// A model file of one of the formats. Sealed: the engine knows them all.
pub trait ModelFile: Tensors + Send + Sync {
    /// The hyper-parameters: every value is checked, and so is every tensor's shape; nothing large is allocated.
    ///
    /// # Errors
    /// An unknown architecture, a missing key, a value that makes no sense, a tensor that is missing, of another shape
    /// or unknown: by name.
    fn config(&self) -> Result<ModelConfig> {
        let mut config = self.read_config()?;
        shapes::check_tensors(self, &self.stored_tensors(), &config)?;
        config.four_bit = four_bit::layers(self, &config)?;
        Ok(config)
    }

    /// The tokenizer and the chat template.
    ///
    /// # Errors
    /// They are missing, damaged or of a kind that is not built in.
    fn texts(&self) -> Result<ModelTexts>;

    /// How the model's makers sample from it, where they say so.
    ///
    /// # Errors
    /// Values that make no sense.
    fn generation(&self) -> Result<GenerationDefaults>;

    /// The name of the architecture, supported or not, where the file has one.
    fn architecture(&self) -> Option<String>;

    /// Name, element type as the file calls it, shape (outermost first) and bytes of each tensor, in the file's order.
    fn stored_tensors(&self) -> Vec<StoredTensor<'_>>;
}

/// Opens a model: the path of a GGUF file or of a safetensors folder. The files must not change while they are open;
/// see [`GgufFile::open`].
///
/// # Errors
/// There is nothing, it cannot be read, or it is damaged.
pub fn open(path: impl AsRef<Path>) -> Result<Box<dyn ModelFile>> {
    let path = path.as_ref();
    if path.is_dir() { Ok(Box::new(ModelFolder::open(path)?)) } else { Ok(Box::new(GgufFile::open(path)?)) }
}
