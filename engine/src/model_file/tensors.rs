//! What the decoder reads of a model file.

use super::{ModelConfig, Part, SourceTensor};
use crate::Result;

/// One tensor as a file holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredTensor<'a> {
    /// Its name.
    pub name: &'a str,
    /// The type of its elements, as the format calls it.
    pub element_type: String,
    /// Its shape, outermost dimension first.
    pub shape: &'a [usize],
    /// Its size; `None` for types that are not read.
    pub bytes: Option<u64>,
}

/// What the decoder reads of a file.
pub trait Tensors {
    /// The hyper-parameters, not yet held against the tensors.
    fn read_config(&self) -> Result<ModelConfig>;

    /// What the file calls a tensor of the decoder.
    fn tensor_name(&self, part: Part) -> String;

    /// The shape that a file gives a tensor of the decoder whose own shape is `shape`.
    fn stored_shape(&self, _part: Part, shape: &[usize], _config: &ModelConfig) -> Vec<usize> {
        shape.to_vec()
    }

    /// A tensor of the decoder; an error where it is missing or of a type that is not read.
    fn tensor(&self, part: Part) -> Result<SourceTensor<'_>>;

    /// Whether a tensor that the decoder has no place for changes no answer: what belongs to another tensor, and
    /// what the architecture does not use.
    fn is_passed_over(&self, name: &str, config: &ModelConfig) -> bool;
}
