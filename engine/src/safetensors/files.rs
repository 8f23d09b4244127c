//! Which files of a folder are the model's, and that they are the folder's own.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::SafetensorsError;
use super::index::{INDEX_FILE, Index, MAX_INDEX_BYTES};
use crate::folder_files;
use crate::mapped_file::{self, MapError};

const WHOLE_MODEL: &str = "model.safetensors";
/// Names quoted in an error.
const SHOWN_NAMES: usize = 4;

/// A folder, and where its files may really be.
pub(super) struct Folder {
    path: PathBuf,
    /// Without links: the folder, and the blobs of the hub's cache if it is a snapshot there.
    homes: Vec<PathBuf>,
}

/// What a folder holds.
pub(super) enum Weights {
    /// The name of the one file.
    One(String),
    /// Shards and the index that names them.
    Sharded(Index),
}

impl Folder {
    pub(super) fn open(path: &Path) -> Result<Self, SafetensorsError> {
        let real = path.canonicalize().map_err(|source| io_error(path, source))?;
        if !real.is_dir() {
            return Err(SafetensorsError::NotAFolder { path: path.to_owned() });
        }
        Ok(Self { path: path.to_owned(), homes: folder_files::homes(&real) })
    }

    /// Finds `model.safetensors`, else the index, else the one `.safetensors` file there is.
    pub(super) fn weights(&self) -> Result<Weights, SafetensorsError> {
        if self.has(WHOLE_MODEL) {
            return Ok(Weights::One(WHOLE_MODEL.into()));
        }
        if self.has(INDEX_FILE) {
            let path = self.file(INDEX_FILE)?;
            let index = read_limited(&path, MAX_INDEX_BYTES).and_then(|json| Index::parse(&json));
            return index.map(Weights::Sharded).map_err(|inner| in_file(&path, inner));
        }
        let folder = || self.path.clone();
        let mut names = self.names()?;
        match (names.pop(), names.is_empty()) {
            (None, _) => Err(SafetensorsError::NoWeights { folder: folder() }),
            (Some(name), true) if is_one_of_several(&name) => {
                Err(SafetensorsError::LoneShard { path: self.path.join(name) })
            }
            (Some(name), true) => Ok(Weights::One(name)),
            (Some(last), false) => {
                names.push(last);
                let more = if names.len() > SHOWN_NAMES { ", ..." } else { "" };
                let shown = names.iter().take(SHOWN_NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
                Err(SafetensorsError::SeveralFiles { folder: folder(), files: shown + more })
            }
        }
    }

    /// The path of a file of the folder; a link is followed only to where the folder's files may be.
    pub(super) fn file(&self, name: &str) -> Result<PathBuf, SafetensorsError> {
        let path = self.path.join(name);
        let target = path.canonicalize().map_err(|source| io_error(&path, source))?;
        let parent = target.parent();
        if self.homes.iter().any(|home| parent == Some(home)) {
            Ok(path)
        } else {
            Err(SafetensorsError::LinkOutside { path, target })
        }
    }

    fn has(&self, name: &str) -> bool {
        self.path.join(name).symlink_metadata().is_ok()
    }

    /// Names of safetensors files, sorted.
    fn names(&self) -> Result<Vec<String>, SafetensorsError> {
        let entries = fs::read_dir(&self.path).map_err(|source| io_error(&self.path, source))?;
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<_> =
            names.filter(|name| name.ends_with(".safetensors") && !name.starts_with('.')).collect();
        names.sort_unstable();
        Ok(names)
    }
}

/// True for `...-00001-of-00003.safetensors`.
fn is_one_of_several(name: &str) -> bool {
    let stem = name.strip_suffix(".safetensors").unwrap_or(name);
    let Some((front, count)) = stem.rsplit_once("-of-") else { return false };
    let number = front.rsplit('-').next().unwrap_or_default();
    number.parse::<u32>().is_ok() && count.parse::<u32>().is_ok_and(|count| count > 1)
}

/// Reads a whole file of at most `limit` bytes.
fn read_limited(path: &Path, limit: u64) -> Result<Vec<u8>, SafetensorsError> {
    let file = mapped_file::open_regular(path).map_err(|error| unopened(path, error))?;
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|source| io_error(path, source))?;
    if bytes.len() as u64 > limit {
        return Err(SafetensorsError::IndexTooLarge { limit });
    }
    Ok(bytes)
}

pub(super) fn unopened(path: &Path, error: MapError) -> SafetensorsError {
    match error {
        MapError::Io(source) => io_error(path, source),
        MapError::NotAFile => SafetensorsError::NotAFile { path: path.to_owned() },
    }
}

fn io_error(path: &Path, source: io::Error) -> SafetensorsError {
    SafetensorsError::Io { path: path.to_owned(), source }
}

/// Adds the file's path to an error that does not say it.
pub(super) fn in_file(path: &Path, inner: SafetensorsError) -> SafetensorsError {
    match inner {
        SafetensorsError::Io { .. } | SafetensorsError::NotAFile { .. } => inner,
        _ => SafetensorsError::InFile { path: path.to_owned(), inner: Box::new(inner) },
    }
}

#[cfg(test)]
mod tests {
    use super::is_one_of_several;

    #[test]
    fn shards_are_known_by_their_numbers() {
        assert!(is_one_of_several("model-00001-of-00003.safetensors"));
        assert!(is_one_of_several("a-of-b-2-of-2.safetensors"));
        for name in ["model-00001-of-00001.safetensors", "best-of-3.safetensors", "model.safetensors"] {
            assert!(!is_one_of_several(name), "{name}");
        }
    }
}
