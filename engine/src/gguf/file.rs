//! A GGUF file, opened and checked.

use std::fmt;
use std::path::Path;

use super::header::Header;
use super::{GgufError, Metadata, TensorInfo, TensorView};
use crate::mapped_file::{self, MapError};
use crate::quoted::quoted;

/// A GGUF file whose header, metadata and tensor table have been checked.
///
/// The tensors' data stays where it is (mapped, for [`Self::open`]) and is read when asked for.
pub struct GgufFile {
    /// Whatever holds the bytes: a map, a vector, a static slice.
    bytes: Box<dyn AsRef<[u8]> + Send + Sync>,
    header: Header,
}

impl GgufFile {
    /// Maps the file at `path` and checks it.
    ///
    /// The data is read from disk as it is used, and shared with other processes that map the same file. The file must
    /// not be changed while it is open: a program that overwrites it changes the weights, and one that truncates it
    /// ends this process with a bus error. Replace model files by renaming a new one over them, which is safe; where
    /// that cannot be relied on, use [`Self::read`].
    ///
    /// # Errors
    /// The file cannot be opened ([`GgufError::Io`], [`GgufError::NotAFile`]) or its contents are wrong
    /// ([`GgufError::InFile`], with the fault inside).
    pub fn open(path: impl AsRef<Path>) -> Result<Self, GgufError> {
        let path = path.as_ref();
        let map = mapped_file::map(path).map_err(|error| unopened(path, error))?;
        Self::from_bytes(map).map_err(|inner| in_file(path, inner))
    }

    /// Reads the whole file at `path` into memory and checks it: what happens to the file later does not matter.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self, GgufError> {
        let path = path.as_ref();
        let mut file = mapped_file::open_regular(path).map_err(|error| unopened(path, error))?;
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut file, &mut bytes).map_err(|source| io(path, source))?;
        Self::from_bytes(bytes).map_err(|inner| in_file(path, inner))
    }

    /// Checks a file that is in memory already. `bytes` must give the same bytes every time.
    ///
    /// # Errors
    /// What is wrong with the bytes, by offset, key or tensor.
    pub fn from_bytes(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Result<Self, GgufError> {
        let header = Header::read(bytes.as_ref())?;
        Ok(Self { bytes: Box::new(bytes), header })
    }

    /// The version of the format: 2 or 3.
    pub fn version(&self) -> u32 {
        self.header.version
    }

    /// The file's key/value metadata.
    pub fn metadata(&self) -> &Metadata {
        &self.header.metadata
    }

    /// The tensor table in the file's order, with tensors of types that are not read.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = &TensorInfo> {
        self.header.tensors.iter()
    }

    /// The table's entry of the tensor called `name`.
    pub fn tensor_info(&self, name: &str) -> Option<&TensorInfo> {
        self.header.index.find(&self.header.tensors, name, TensorInfo::name)
    }

    /// The tensor called `name`, to read its data.
    ///
    /// # Errors
    /// There is none ([`GgufError::UnknownTensor`]), or its type is not read ([`GgufError::UnsupportedType`]).
    pub fn tensor(&self, name: &str) -> Result<TensorView<'_>, GgufError> {
        let info = self.tensor_info(name).ok_or_else(|| GgufError::UnknownTensor { tensor: quoted(name) })?;
        info.view((*self.bytes).as_ref())
    }
}

impl fmt::Debug for GgufFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GgufFile")
            .field("version", &self.version())
            .field("metadata_entries", &self.metadata().len())
            .field("tensors", &self.tensors().len())
            .finish_non_exhaustive()
    }
}

fn unopened(path: &Path, error: MapError) -> GgufError {
    match error {
        MapError::Io(source) => io(path, source),
        MapError::NotAFile => GgufError::NotAFile { path: path.to_owned() },
    }
}

fn io(path: &Path, source: std::io::Error) -> GgufError {
    GgufError::Io { path: path.to_owned(), source }
}

fn in_file(path: &Path, inner: GgufError) -> GgufError {
    GgufError::InFile { path: path.to_owned(), inner: Box::new(inner) }
}
