//! Safetensors model folders: reading their tensors safely.
//!
//! A safetensors file is a header and the tensors' bytes:
//!
//! ```text
//! u64 header_bytes (little-endian)
//! header_bytes of JSON: { "name": { "dtype": "BF16", "shape": [rows, cols], "data_offsets": [start, end] }, ... }
//! the tensors, one behind the other; offsets count from here
//! ```
//!
//! A large model is in several such files (shards), and `model.safetensors.index.json` says which tensor is in which.
//! The format is described in the README of the safetensors crate, which gives this module its element types.
//!
//! Model files come from strangers, so nothing in one is believed before it is checked: names of shards are plain names
//! of files in the folder, every tensor has the size of its shape and type, and a file's tensors cover its data without
//! gap or overlap. Nothing is assumed about alignment. Opening a folder allocates at most a small multiple of its
//! headers' and index's size.
//!
//! ```
//! use halite_engine::safetensors::{ElementType, SafetensorsFolder};
//! # let folder = tempfile::tempdir().unwrap();
//! # let header = br#"{"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}"#;
//! # let bytes = [&(header.len() as u64).to_le_bytes(), &header[..], &1f32.to_le_bytes(), &2f32.to_le_bytes()];
//! # std::fs::write(folder.path().join("model.safetensors"), bytes.concat()).unwrap();
//!
//! let model = SafetensorsFolder::open(folder.path())?;
//! let weight = model.tensor("w").expect("this model has it");
//! assert_eq!((weight.dtype(), weight.shape()), (ElementType::F32, &[1, 2][..]));
//! assert_eq!(weight.to_f32()?, [1.0, 2.0]);
//! # Ok::<(), halite_engine::safetensors::SafetensorsError>(())
//! ```

mod element_type;
mod error;
mod files;
mod folder;
mod header;
pub(crate) mod index;
mod json;
mod view;

pub use element_type::ElementType;
pub use error::SafetensorsError;
pub use folder::SafetensorsFolder;
pub use view::SafetensorsView;
