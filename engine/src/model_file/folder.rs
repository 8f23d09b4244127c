//! A safetensors folder as a model file.

use super::compressed_tensors;
use super::family::Family;
use super::json::JsonObject;
use super::{
    GenerationDefaults, ModelConfig, ModelError, ModelFile, ModelTexts, Part, SourceTensor, StoredTensor,
    Tensors, folder_config, folder_names, generation,
};
use crate::Result;
use crate::safetensors::{ElementType, SafetensorsFolder, SafetensorsView};
use crate::text;
use std::path::{Path, PathBuf};

/// A folder as the `transformers` package saves it: `config.json`, safetensors, tokenizer and chat template.
pub struct ModelFolder {
    path: PathBuf,
    config: JsonObject,
    tensors: SafetensorsFolder,
    /// What stands before the names of the decoder's tensors.
    prefix: &'static str,
    /// It decides what some tensors are called.
    family: Option<Family>,
    /// Whether its matrices are INT8.
    quantized: bool,
}

impl ModelFolder {
    /// Maps the folder's safetensors, checks their headers and reads `config.json`. As with
    /// [`GgufFile::open`](crate::gguf::GgufFile::open), the files must not change while they are open.
    ///
    /// # Errors
    /// A file is missing or damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let config = JsonObject::open(path, "config.json")?
            .ok_or_else(|| ModelError::NotAModelFolder { path: path.display().to_string() })?;
        let tensors = SafetensorsFolder::open(path)?;
        let prefix = folder_names::prefix(&tensors);
        // A kind that is not read is told by `config`, so that such a folder can be inspected.
        let quantized = compressed_tensors::is_declared(&config).unwrap_or(false);
        let family = config.opt_str("model_type").ok().flatten().and_then(Family::of);
        Ok(Self { path: path.to_owned(), config, tensors, prefix, family, quantized })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn view(&self, name: &str) -> Result<SafetensorsView<'_>> {
        let missing = || ModelError::MissingTensor { tensor: name.to_owned(), expected: Vec::new() };
        Ok(self.tensors.tensor(name).ok_or_else(missing)?)
    }
}

impl ModelFile for ModelFolder {
    fn texts(&self) -> Result<ModelTexts> {
        let text::FolderTexts { tokenizer, template, .. } = text::read_folder(&self.path)?;
        let ends = generation::end_tokens(&self.path, &self.config)?;
        Ok(ModelTexts::new(tokenizer.with_end_tokens(ends), template))
    }

    fn generation(&self) -> Result<GenerationDefaults> {
        GenerationDefaults::read(&self.path)
    }

    fn architecture(&self) -> Option<String> {
        self.config.opt_str("model_type").ok().flatten().map(str::to_owned)
    }

    fn stored_tensors(&self) -> Vec<StoredTensor<'_>> {
        let tensors = self.tensors.tensors().map(|tensor| StoredTensor {
            name: tensor.name(),
            element_type: tensor.dtype().to_string(),
            shape: tensor.shape(),
            bytes: Some(tensor.data().len() as u64),
        });
        tensors.collect()
    }
}

impl Tensors for ModelFolder {
    fn read_config(&self) -> Result<ModelConfig> {
        let quantized = compressed_tensors::is_declared(&self.config)?;
        let embedding = self.tensor_name(Part::Embedding);
        let has = |part| self.tensors.tensor(&self.tensor_name(part)).is_some();
        let mut config = folder_config::read(&self.config, &self.tensors, &embedding, has)?;
        config.stored_w8a8 = quantized;
        Ok(config)
    }

    fn tensor_name(&self, part: Part) -> String {
        folder_names::name(self.prefix, part, self.family)
    }

    fn tensor(&self, part: Part) -> Result<SourceTensor<'_>> {
        let name = self.tensor_name(part);
        let view = self.view(&name)?;
        match (view.dtype(), self.quantized) {
            (ElementType::F32 | ElementType::F16 | ElementType::Bf16, _) => {
                Ok(SourceTensor::Safetensors(view))
            }
            (ElementType::I8, true) => {
                let scales =
                    compressed_tensors::scales(&view, self.view(&compressed_tensors::scale_name(&name))?)?;
                Ok(SourceTensor::Int8PerChannel { q: view, scales })
            }
            (dtype, _) => Err(ModelError::ElementType { tensor: name, dtype: dtype.to_string() }.into()),
        }
    }

    fn is_passed_over(&self, name: &str, config: &ModelConfig) -> bool {
        let scale = self.quantized && compressed_tensors::is_scale(name);
        scale || folder_names::is_passed_over(name, config)
    }
}

impl std::fmt::Debug for ModelFolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelFolder").field("path", &self.path).finish_non_exhaustive()
    }
}
