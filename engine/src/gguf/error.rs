//! What can be wrong with a GGUF file, or with what was asked of it.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use super::GgmlType;
use crate::quoted::quoted;

/// Why a GGUF file was refused, or why a question about it has no answer.
///
/// Offsets are in bytes from the start of the file. Names that come out of a file are shortened and escaped, so a
/// message is safe to print.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GgufError {
    /// The file could not be opened or mapped.
    #[error("cannot open {}: {source}", path.display())]
    Io {
        /// The file asked for.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The path leads to a directory, a pipe or a device.
    #[error("{} is not a regular file; give the path of a .gguf file", path.display())]
    NotAFile {
        /// The path asked for.
        path: PathBuf,
    },
    /// A fault in the contents of the file at `path`.
    #[error("{}: {inner}", path.display())]
    InFile {
        /// The file that was opened.
        path: PathBuf,
        /// What is wrong with it.
        inner: Box<GgufError>,
    },
    /// The file does not start with `GGUF`.
    #[error("not a GGUF file: it starts with \"{}\", expected \"GGUF\"", found.escape_ascii())]
    BadMagic {
        /// The first four bytes.
        found: [u8; 4],
    },
    /// The file is in big-endian order.
    #[error(
        "the file is big-endian (GGUF version {version}); only little-endian files are read: convert it first"
    )]
    BigEndian {
        /// The version, read in big-endian order.
        version: u32,
    },
    /// A version of the format that is not read.
    #[error(
        "GGUF version {version} is not supported; versions 2 and 3 are: convert the file again with a current tool"
    )]
    UnsupportedVersion {
        /// The version in the header.
        version: u32,
    },
    /// The file ends inside something, or a length in it is wrong.
    #[error(
        "{what} at byte {offset} takes {needed} bytes, but {available} are left: the file is cut short or corrupt"
    )]
    Truncated {
        /// What was being read.
        what: String,
        /// Where it starts.
        offset: u64,
        /// Bytes it takes.
        needed: u64,
        /// Bytes between its start and the end of the file.
        available: u64,
    },
    /// A count says there is more than the rest of the file can hold.
    #[error(
        "{what} at byte {offset} is {count}, at no less than {min_bytes} bytes each, but {available} bytes are left: \
         the file is cut short or corrupt"
    )]
    CountTooLarge {
        /// What is counted.
        what: String,
        /// Where the counted things start.
        offset: u64,
        /// The count in the file.
        count: u64,
        /// The least each can take.
        min_bytes: u64,
        /// Bytes that are left.
        available: u64,
    },
    /// A string is longer than its kind may be.
    #[error("{what} at byte {offset} has {len} bytes; at most {limit} are allowed")]
    NameTooLong {
        /// What was being read.
        what: String,
        /// Where its text starts.
        offset: u64,
        /// Its length in the file.
        len: u64,
        /// The limit.
        limit: u64,
    },
    /// A string is not UTF-8.
    #[error("{what} at byte {offset} is not UTF-8 (first bad byte at {bad_byte})")]
    InvalidUtf8 {
        /// What was being read.
        what: String,
        /// Where its text starts.
        offset: u64,
        /// Where the first byte stands that cannot be UTF-8.
        bad_byte: u64,
    },
    /// A boolean is neither 0 nor 1.
    #[error("{what} at byte {offset} is {value}; a boolean is 0 or 1")]
    InvalidBool {
        /// What was being read.
        what: String,
        /// Where it stands.
        offset: u64,
        /// The byte there.
        value: u8,
    },
    /// A metadata value has a type that does not exist.
    #[error("{what} at byte {offset} has value type {id}; the types are 0 to 12")]
    UnknownValueType {
        /// What was being read.
        what: String,
        /// Where the type stands.
        offset: u64,
        /// The type in the file.
        id: u32,
    },
    /// Arrays inside arrays inside arrays, and so on.
    #[error("{what} at byte {offset} nests arrays more than {limit} deep")]
    NestingTooDeep {
        /// What was being read.
        what: String,
        /// Where the innermost array starts.
        offset: u64,
        /// The limit.
        limit: usize,
    },
    /// Two metadata entries have the same key.
    #[error("metadata key {key} occurs twice")]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// Two tensors have the same name.
    #[error("tensor {tensor} occurs twice")]
    DuplicateTensor {
        /// The name.
        tensor: String,
    },
    /// `general.alignment` cannot be an alignment.
    #[error("metadata key general.alignment is {value}; expected a power of two")]
    BadAlignment {
        /// Its value.
        value: u64,
    },
    /// The metadata has no such key.
    #[error("metadata key {key} is missing")]
    MissingKey {
        /// The key asked for.
        key: String,
    },
    /// The metadata's value has another type than was asked for.
    #[error("metadata key {key}: expected {expected}, got {got}")]
    WrongType {
        /// The key asked for.
        key: String,
        /// The type asked for.
        expected: &'static str,
        /// The type in the file.
        got: String,
    },
    /// The metadata's value does not fit the type asked for.
    #[error("metadata key {key}: {value} does not fit {expected}")]
    OutOfRange {
        /// The key asked for.
        key: String,
        /// The type asked for.
        expected: &'static str,
        /// The value in the file.
        value: String,
    },
    /// A tensor has no dimensions, or too many.
    #[error("tensor {tensor} has {got} dimensions; expected 1 to {limit}")]
    BadDimensionCount {
        /// The tensor's name.
        tensor: String,
        /// The number in the file.
        got: u32,
        /// The most there may be.
        limit: u32,
    },
    /// A dimension is 0.
    #[error("tensor {tensor} has shape {shape:?}, with a dimension of 0")]
    ZeroDimension {
        /// The tensor's name.
        tensor: String,
        /// Its shape, outermost first.
        shape: Vec<u64>,
    },
    /// The number of elements or bytes of a tensor leaves 64 bits.
    #[error("tensor {tensor} has shape {shape:?}, whose size does not fit in 64 bits")]
    SizeOverflow {
        /// The tensor's name.
        tensor: String,
        /// Its shape, outermost first.
        shape: Vec<u64>,
    },
    /// A row is not a whole number of blocks.
    #[error(
        "tensor {tensor} ({ty}) has rows of {row_len} values, which is no multiple of its block of {block_len}"
    )]
    PartialBlock {
        /// The tensor's name.
        tensor: String,
        /// Its type.
        ty: GgmlType,
        /// Its innermost dimension.
        row_len: u64,
        /// Values in a block of that type.
        block_len: usize,
    },
    /// A tensor's offset is not a multiple of the alignment.
    #[error("tensor {tensor} has offset {offset}, which is no multiple of the file's alignment {alignment}")]
    Misaligned {
        /// The tensor's name.
        tensor: String,
        /// Its offset from the start of the data.
        offset: u64,
        /// The file's alignment.
        alignment: u64,
    },
    /// A tensor reaches beyond the end of the file.
    #[error(
        "tensor {tensor} takes {bytes} bytes from offset {offset} of the data, which starts at byte {data_start}, but \
         the file has {file_len} bytes: the file is cut short or corrupt"
    )]
    OutsideFile {
        /// The tensor's name.
        tensor: String,
        /// Its offset from the start of the data.
        offset: u64,
        /// Its size; 0 where the type is not known.
        bytes: u64,
        /// Where the data starts.
        data_start: u64,
        /// The file's size.
        file_len: u64,
    },
    /// Two tensors share bytes.
    #[error("tensors {first} and {second} overlap in the file")]
    Overlap {
        /// The one that starts first.
        first: String,
        /// The one that starts inside it.
        second: String,
    },
    /// The file has no such tensor.
    #[error("the file has no tensor {tensor}")]
    UnknownTensor {
        /// The name asked for.
        tensor: String,
    },
    /// The tensor's type is not read.
    #[error(
        "tensor {tensor} has type {id} ({name}), which is not supported; use a file quantised to another type"
    )]
    UnsupportedType {
        /// The tensor's name.
        tensor: String,
        /// The type in the file.
        id: u32,
        /// What other tools call it.
        name: &'static str,
    },
    /// Rows were asked for that the tensor does not have.
    #[error("tensor {tensor}: rows {rows:?} were asked for, it has {have}")]
    RowsOutOfRange {
        /// The tensor's name.
        tensor: String,
        /// The rows asked for.
        rows: Range<usize>,
        /// The number of rows there are.
        have: usize,
    },
    /// The place for the values has another size than the rows asked for.
    #[error("tensor {tensor}: the output has {got} values, the rows asked for have {expected}")]
    OutputLength {
        /// The tensor's name.
        tensor: String,
        /// Rows times row length.
        expected: usize,
        /// The length of the output.
        got: usize,
    },
}

/// What is being read, kept as cheap parts until a message needs it.
#[derive(Clone, Copy, Debug)]
pub(super) enum What<'a> {
    /// A fixed part of the file.
    Part(&'static str),
    /// The key of the metadata entry with this number.
    Key(u64),
    /// The type or value under this key.
    Value(&'a str),
    /// An element of the array under this key.
    Element(&'a str, u64),
    /// The number of elements of the array under this key.
    Elements(&'a str),
    /// The name of the tensor with this number.
    TensorName(u64),
    /// The rest of this tensor's entry.
    Tensor(&'a str),
}

impl fmt::Display for What<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Part(part) => f.write_str(part),
            Self::Key(number) => write!(f, "the key of metadata entry {number}"),
            Self::Value(key) => write!(f, "the value of metadata key {}", quoted(key)),
            Self::Element(key, number) => write!(f, "element {number} of metadata key {}", quoted(key)),
            Self::Elements(key) => write!(f, "the number of elements of metadata key {}", quoted(key)),
            Self::TensorName(number) => write!(f, "the name of tensor {number}"),
            Self::Tensor(name) => write!(f, "the entry of tensor {}", quoted(name)),
        }
    }
}
