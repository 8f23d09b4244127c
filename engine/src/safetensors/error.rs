//! What can be wrong with a safetensors folder, or with what was asked of it.

use std::ops::Range;
use std::path::PathBuf;

use super::ElementType;

/// Why a safetensors folder was refused, or why a question about it has no answer.
///
/// Names that come out of a file are shortened and escaped, so a message is safe to print.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SafetensorsError {
    /// A file or the folder could not be opened, read or mapped.
    #[error("cannot open {}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The path leads to something else than a folder.
    #[error("{} is not a folder; give the folder that holds config.json and the .safetensors files", path.display())]
    NotAFolder {
        /// The path asked for.
        path: PathBuf,
    },
    /// A directory, a pipe or a device where a file should be.
    #[error("{} is not a regular file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The folder has no safetensors file.
    #[error(
        "{} has no .safetensors file; a model folder holds model.safetensors, or model.safetensors.index.json and \
         its shards", folder.display()
    )]
    NoWeights {
        /// The folder.
        folder: PathBuf,
    },
    /// Several files, and nothing says how they belong together.
    #[error(
        "{} has several .safetensors files ({files}) and neither model.safetensors nor \
         model.safetensors.index.json to say which belong together; if it was downloaded, the download may be \
         incomplete: run `halite pull` again", folder.display()
    )]
    SeveralFiles {
        /// The folder.
        folder: PathBuf,
        /// The first of their names.
        files: String,
    },
    /// One shard of several, alone.
    #[error(
        "{} is one shard of several, and model.safetensors.index.json is missing; if it was downloaded, the \
         download may be incomplete: run `halite pull` again", path.display()
    )]
    LoneShard {
        /// The shard.
        path: PathBuf,
    },
    /// A symbolic link that leads out of the folder, and not into the blobs of the hub's cache it is in.
    #[error(
        "{} is a link to {}, which is outside of the model's folder; give the folder that holds the files",
        path.display(), target.display()
    )]
    LinkOutside {
        /// The link.
        path: PathBuf,
        /// Where it leads.
        target: PathBuf,
    },
    /// A fault in the contents of the file at `path`.
    #[error("{}: {inner}", path.display())]
    InFile {
        /// The file that was opened.
        path: PathBuf,
        /// What is wrong with it.
        inner: Box<SafetensorsError>,
    },
    /// The index is larger than any real one.
    #[error("the index has more than {limit} bytes")]
    IndexTooLarge {
        /// The limit.
        limit: u64,
    },
    /// The index is not what an index should be.
    #[error("not an index of safetensors files: {reason}")]
    BadIndex {
        /// What is wrong.
        reason: String,
    },
    /// The index names a shard that is no plain file name.
    #[error(
        "the index puts tensor {tensor} into {shard}; a shard is a file in the same folder, named without a path \
         and ending in .safetensors"
    )]
    BadShardName {
        /// The tensor.
        tensor: String,
        /// The name in the index.
        shard: String,
    },
    /// A shard is not there.
    #[error(
        "the shard {} with tensor {tensor} is missing; the download may be incomplete: run `halite pull` again",
        path.display()
    )]
    MissingShard {
        /// Where it should be.
        path: PathBuf,
        /// A tensor that the index puts into it.
        tensor: String,
    },
    /// The index names a tensor that its shard does not have.
    #[error("the index puts tensor {tensor} into {shard}, which does not have it")]
    NotInShard {
        /// The tensor.
        tensor: String,
        /// The shard.
        shard: String,
    },
    /// Two shards have the same tensor.
    #[error("tensor {tensor} is in {first} and in {second}")]
    InTwoShards {
        /// The tensor.
        tensor: String,
        /// One shard.
        first: String,
        /// The other.
        second: String,
    },
    /// The file ends before its header does.
    #[error(
        "the header takes {needed} bytes, but the file has {available}: it is cut short, or no safetensors file"
    )]
    HeaderOutsideFile {
        /// Bytes of the header and its length.
        needed: u64,
        /// Bytes of the file.
        available: u64,
    },
    /// The header is larger than the format allows.
    #[error("the header has {bytes} bytes; the format allows {limit}: this is no safetensors file")]
    HeaderTooLarge {
        /// Bytes according to the file.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The header is not what a header should be.
    #[error("the header is wrong: {reason}")]
    BadHeader {
        /// What is wrong.
        reason: String,
    },
    /// A tensor's size is not that of its shape and type.
    #[error(
        "tensor {tensor} of type {dtype} and shape {shape:?} takes {expected} bits, its offsets give it {got}"
    )]
    WrongSize {
        /// The tensor.
        tensor: String,
        /// Its type.
        dtype: ElementType,
        /// Its shape.
        shape: Vec<usize>,
        /// Bits for the shape and type.
        expected: u128,
        /// Bits between the offsets.
        got: u128,
    },
    /// A shape has more elements than memory has bytes.
    #[error("tensor {tensor} of shape {shape:?} has too many elements")]
    SizeOverflow {
        /// The tensor.
        tensor: String,
        /// Its shape.
        shape: Vec<usize>,
    },
    /// A tensor does not begin where the one before it ends: they overlap, or there is a gap.
    #[error(
        "tensor {tensor} takes bytes {start} to {end} of the data, but the one before it ends at {expected}: tensors \
         must follow each other without gap or overlap"
    )]
    OutOfPlace {
        /// The tensor.
        tensor: String,
        /// Its start.
        start: u64,
        /// Its end.
        end: u64,
        /// Where it should start.
        expected: u64,
    },
    /// The file's size is not that of its tensors.
    #[error("the tensors take {expected} bytes of data, but the file has {got}: it is cut short or corrupt")]
    WrongFileSize {
        /// Bytes of all tensors.
        expected: u64,
        /// Bytes behind the header.
        got: u64,
    },
    /// The tensor's values are of a type that this question does not fit.
    #[error("tensor {tensor} has type {got}; expected {expected}")]
    WrongType {
        /// The tensor.
        tensor: String,
        /// The types that fit.
        expected: &'static str,
        /// The type it has.
        got: ElementType,
    },
    /// Rows were asked of a tensor that is no matrix.
    #[error("tensor {tensor} has shape {shape:?}; expected two dimensions")]
    NotAMatrix {
        /// The tensor.
        tensor: String,
        /// Its shape.
        shape: Vec<usize>,
    },
    /// Rows were asked for that the tensor does not have.
    #[error("tensor {tensor}: rows {rows:?} were asked for, it has {have}")]
    RowsOutOfRange {
        /// The tensor.
        tensor: String,
        /// The rows asked for.
        rows: Range<usize>,
        /// The number of rows there are.
        have: usize,
    },
    /// The place for the values has another size than the rows asked for.
    #[error("tensor {tensor}: the output has {got} values, the rows asked for have {expected}")]
    OutputLength {
        /// The tensor.
        tensor: String,
        /// Rows times row length.
        expected: usize,
        /// The length of the output.
        got: usize,
    },
}
