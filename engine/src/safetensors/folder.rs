//! A model's safetensors files, opened and checked.

use std::fmt;
use std::io;
use std::path::Path;

use memmap2::Mmap;

use super::files::{Folder, Weights, in_file, unopened};
use super::header::{self, HeaderEntry};
use super::index::Index;
use super::{SafetensorsError, SafetensorsView};
use crate::mapped_file;
use crate::quoted::quoted;

/// All tensors of a model folder, whose headers and index have been checked.
///
/// The tensors' data stays mapped and is read when asked for.
pub struct SafetensorsFolder {
    shards: Vec<Mmap>,
    /// Sorted by name.
    tensors: Vec<Tensor>,
}

struct Tensor {
    /// The number of its shard.
    shard: usize,
    entry: HeaderEntry,
}

impl SafetensorsFolder {
    /// Maps and checks a folder's `model.safetensors`; where there is none, `model.safetensors.index.json` and the
    /// shards it names; where there is neither, the one `.safetensors` file in the folder.
    ///
    /// A file may be a link only within the folder, or into the blobs of the hub's cache if the folder is one of its
    /// snapshots. The data is read from disk as it is used. The files must not be changed while they are open: a
    /// program that overwrites one changes the weights, and one that truncates it ends this process with a bus error.
    ///
    /// # Errors
    /// The folder has no weights or not all of them ([`SafetensorsError::NoWeights`],
    /// [`SafetensorsError::MissingShard`], ...), a file cannot be opened ([`SafetensorsError::Io`]), or its contents are
    /// wrong ([`SafetensorsError::InFile`], with the fault inside).
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, SafetensorsError> {
        let folder = Folder::open(dir.as_ref())?;
        let (names, index) = match folder.weights()? {
            Weights::One(name) => (vec![name.into_boxed_str()], None),
            Weights::Sharded(Index { shards, tensors }) => (shards, Some(tensors)),
        };
        let mut shards = Vec::with_capacity(names.len());
        let mut tensors = Vec::new();
        for (shard, name) in names.iter().enumerate() {
            let path = folder.file(name).map_err(|error| match error {
                SafetensorsError::Io { path, source } if source.kind() == io::ErrorKind::NotFound => {
                    SafetensorsError::MissingShard { path, tensor: tensor_of(index.as_deref(), shard) }
                }
                error => error,
            })?;
            let map = mapped_file::map(&path).map_err(|error| unopened(&path, error))?;
            let entries = header::read(&map).map_err(|inner| in_file(&path, inner))?;
            tensors.extend(entries.into_iter().map(|entry| Tensor { shard, entry }));
            shards.push(map);
        }
        tensors.sort_unstable_by(|left, right| left.entry.name.cmp(&right.entry.name));
        let folder = Self { shards, tensors };
        folder.check(&names, index.as_deref().unwrap_or_default())?;
        Ok(folder)
    }

    /// Every tensor is in one shard, and in the one that the index says.
    fn check(&self, names: &[Box<str>], index: &[(Box<str>, usize)]) -> Result<(), SafetensorsError> {
        let shard = |number: usize| quoted(names.get(number).map(AsRef::as_ref).unwrap_or_default());
        let same = |[left, right]: &&[Tensor; 2]| left.entry.name == right.entry.name;
        if let Some([left, right]) = self.tensors.array_windows().find(same) {
            return Err(SafetensorsError::InTwoShards {
                tensor: quoted(&left.entry.name),
                first: shard(left.shard),
                second: shard(right.shard),
            });
        }
        match index.iter().find(|(name, number)| self.find(name).is_none_or(|found| found.shard != *number)) {
            Some((name, number)) => {
                Err(SafetensorsError::NotInShard { tensor: quoted(name), shard: shard(*number) })
            }
            None => Ok(()),
        }
    }

    /// All tensors, in the order of their names.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = SafetensorsView<'_>> {
        self.tensors.iter().map(|tensor| self.view(tensor))
    }

    /// The tensor called `name`.
    pub fn tensor(&self, name: &str) -> Option<SafetensorsView<'_>> {
        self.find(name).map(|tensor| self.view(tensor))
    }

    /// Bytes of all tensors' data.
    pub fn bytes(&self) -> u64 {
        self.tensors.iter().map(|tensor| tensor.entry.bytes.len() as u64).sum()
    }

    fn find(&self, name: &str) -> Option<&Tensor> {
        let found = self.tensors.binary_search_by(|tensor| (*tensor.entry.name).cmp(name)).ok()?;
        self.tensors.get(found)
    }

    fn view<'a>(&'a self, tensor: &'a Tensor) -> SafetensorsView<'a> {
        let HeaderEntry { name, dtype, shape, bytes } = &tensor.entry;
        // Checked when the file was opened; a map does not change its length.
        let data = self.shards.get(tensor.shard).and_then(|map| map.get(bytes.clone())).unwrap_or_default();
        SafetensorsView::new(name, *dtype, shape, data)
    }
}

/// A tensor that the index puts into this shard.
fn tensor_of(index: Option<&[(Box<str>, usize)]>, shard: usize) -> String {
    let mut tensors = index.unwrap_or_default().iter();
    tensors.find(|(_, number)| *number == shard).map(|(name, _)| quoted(name)).unwrap_or_default()
}

impl fmt::Debug for SafetensorsFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SafetensorsFolder")
            .field("shards", &self.shards.len())
            .field("tensors", &self.tensors.len())
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}
