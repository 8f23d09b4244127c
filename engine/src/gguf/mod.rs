//! GGUF model files: reading them safely, and turning their tensors into `f32`.
//!
//! A GGUF file (versions 2 and 3, little-endian) is a header, key/value metadata, a table of tensors and their data:
//!
//! ```text
//! "GGUF"  u32 version  u64 tensor_count  u64 metadata_count
//! metadata_count x { string key, u32 value_type, value }
//! tensor_count   x { string name, u32 n_dims, n_dims x u64 dim (innermost first), u32 type, u64 offset }
//! padding to `general.alignment` (32 unless the metadata says otherwise)
//! tensor data, every `offset` counted from here
//! ```
//!
//! A string is a `u64` length and that many bytes; an array is a `u32` element type, a `u64` count and the elements.
//! The format is described in the ggml project's `gguf.md`.
//!
//! Model files come from strangers, so nothing in one is believed before it is checked: every length and count is held
//! against the bytes that are left before anything is allocated for it, and every tensor is known to lie inside the
//! file, aligned and apart from every other, before [`GgufFile`] exists. Opening a file allocates at most a small
//! multiple of its metadata's size, whatever its counts say.
//!
//! ```
//! use halite_engine::gguf::{GgufError, GgufFile};
//!
//! # fn main() -> Result<(), GgufError> {
//! // Version 3, no tensors, one metadata entry.
//! let mut bytes = b"GGUF\x03\0\0\0".to_vec();
//! bytes.extend(0u64.to_le_bytes());
//! bytes.extend(1u64.to_le_bytes());
//! bytes.extend(11u64.to_le_bytes());
//! bytes.extend(b"block_count\x04\0\0\0\x1e\0\0\0");
//!
//! let file = GgufFile::from_bytes(bytes)?;
//! assert_eq!(file.metadata().u64("block_count")?, 30);
//! assert!(matches!(file.tensor("output.weight"), Err(GgufError::UnknownTensor { .. })));
//! # Ok(())
//! # }
//! ```

mod cursor;
mod dequantize;
mod error;
mod file;
mod ggml_type;
mod header;
mod metadata;
mod name_index;
mod tensor;
mod value;

pub use dequantize::dequantize_rows;
pub use error::GgufError;
pub use file::GgufFile;
pub use ggml_type::GgmlType;
pub use metadata::Metadata;
pub use tensor::{TensorInfo, TensorView};
pub use value::{Array, Strings, Value};
