//! The folder that keeps model files.

use std::env;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use sha2::{Digest, Sha256};

use super::error::StoreError;
use super::marker::Marker;
use super::progress::Phase;
use super::registry::KnownModel;

/// Bytes read and hashed between two reports of progress.
pub(crate) const CHUNK_BYTES: usize = 1 << 20;

/// A folder of model files, each verified before it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// The folder given, else the one in the environment variable `HALITE_CACHE`, else `halite/models` in the user's
    /// cache folder (`$XDG_CACHE_HOME` or `~/.cache`; on Windows the local application data). It need not exist.
    ///
    /// # Errors
    /// [`StoreError::NoCacheFolder`] if all of that is unknown.
    pub fn open(folder: Option<PathBuf>) -> Result<Self, StoreError> {
        let named = folder
            .or_else(|| env::var_os("HALITE_CACHE").filter(|value| !value.is_empty()).map(PathBuf::from));
        if let Some(folder) = named {
            return Ok(Self { folder });
        }
        let base = etcetera::choose_base_strategy().map_err(|_| StoreError::NoCacheFolder)?;
        Ok(Self { folder: base.cache_dir().join("halite").join("models") })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where a model's file is, or will be.
    pub fn path_of(&self, model: &KnownModel) -> PathBuf {
        self.folder.join(model.file.name)
    }

    /// The file of a model if it is here and right. Its size is checked each time; its hash the first time, and
    /// again whenever its size or time of modification changed.
    ///
    /// # Errors
    /// [`StoreError::Folder`] if the file is there but cannot be read.
    pub fn find(
        &self,
        model: &KnownModel,
        progress: &mut dyn FnMut(Phase),
    ) -> Result<Option<PathBuf>, StoreError> {
        let path = self.path_of(model);
        let read = |source| StoreError::Folder { action: "read", path: path.clone(), source };
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(read(error)),
        };
        let metadata = file.metadata().map_err(read)?;
        if !metadata.is_file() || metadata.len() != model.file.bytes {
            return Ok(None);
        }
        let marker = Marker::of(&metadata, model.file.sha256);
        if marker.is_some() && marker == Marker::read(&path) {
            return Ok(Some(path));
        }
        let found = hash(&mut file, |bytes| progress(Phase::Verifying { bytes, total: model.file.bytes }));
        if found.map_err(read)? != model.file.sha256 {
            tracing::warn!(file = %path.display(), "the cached file has the wrong SHA-256 and is not used");
            return Ok(None);
        }
        if let Some(marker) = marker {
            marker.write(&path);
        }
        Ok(Some(path))
    }
}

fn hash(reader: &mut impl Read, mut report: impl FnMut(u64)) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut bytes = 0;
    loop {
        report(bytes);
        let count = reader.read(&mut buffer)?;
        if count == 0 {
            return Ok(hex(&hasher.finalize()));
        }
        hasher.update(&buffer[..count]);
        bytes += count as u64;
    }
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
