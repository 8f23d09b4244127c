//! What can be wrong with a model whose file is sound.

/// An error of the model itself: its message names the key or tensor, what was expected and what was found.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A kind of model that is not built in.
    #[error("unsupported architecture {found}; supported: {supported}")]
    Architecture {
        /// The file's value, quoted and shortened.
        found: String,
        /// Comma-separated names.
        supported: &'static str,
    },
    /// A hyper-parameter outside its range, or at odds with another.
    #[error("model: key `{key}`: expected {expected}, got {got}")]
    Value {
        /// The metadata key.
        key: String,
        /// What makes sense.
        expected: String,
        /// The file's value.
        got: String,
    },
    /// A hyper-parameter is not there.
    #[error("model: key `{key}` is missing")]
    MissingKey {
        /// The metadata key.
        key: String,
    },
    /// A tensor that the hyper-parameters call for is not there.
    #[error("model: tensor `{tensor}` is missing; expected one of shape {expected:?}")]
    MissingTensor {
        /// Its name.
        tensor: String,
        /// Its shape, outermost first.
        expected: Vec<usize>,
    },
    /// A tensor of another shape than the hyper-parameters say.
    #[error("model: tensor `{tensor}`: expected shape {expected:?}, got {got:?}")]
    TensorShape {
        /// Its name.
        tensor: String,
        /// The shape wanted, outermost first.
        expected: Vec<usize>,
        /// The shape found.
        got: Vec<usize>,
    },
    /// A tensor that would be ignored: the answers would be wrong without it.
    #[error("model: tensor {tensor} has no place in the architecture {architecture} as it is built in")]
    UnknownTensor {
        /// Its name, quoted and shortened.
        tensor: String,
        /// The architecture.
        architecture: String,
    },
    /// A folder without a `config.json`.
    #[error(
        "{path} has no config.json: it is no model folder; give the folder that holds config.json and *.safetensors, or a .gguf file"
    )]
    NotAModelFolder {
        /// The folder.
        path: String,
    },
    /// A JSON file of a model folder that cannot be read.
    #[error("{path}: {cause}")]
    Json {
        /// The file.
        path: String,
        /// What is wrong with it.
        cause: String,
    },
    /// Elements of a type that weights are not read from.
    #[error(
        "model: tensor `{tensor}` has elements of type {dtype}; F32, F16 and BF16 are read, and I8 with a scale a row where config.json says so"
    )]
    ElementType {
        /// The tensor's name.
        tensor: String,
        /// The type as the file calls it.
        dtype: String,
    },
    /// A checkpoint that is quantised in part.
    #[error(
        "model: tensor `{tensor}` is not quantised, in a W8A8 checkpoint: mixed weights are not supported as W8A8; keep all of them as BF16 (`--weights bf16`)"
    )]
    NotQuantized {
        /// The tensor's name.
        tensor: String,
    },
    /// A weight that is infinite or not a number.
    #[error("model: tensor `{tensor}`: row {row} holds an infinity or a NaN")]
    NotFinite {
        /// The tensor's name.
        tensor: String,
        /// Which row.
        row: usize,
    },
    /// Something that the file asks for and that is not built in.
    #[error("model: {what} is not supported: {got} (key `{key}`)")]
    Unsupported {
        /// In plain words.
        what: &'static str,
        /// The metadata key.
        key: String,
        /// The file's value; text quoted and shortened.
        got: String,
    },
}
