//! The folder that keeps model files.

use std::env;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use sha2::{Digest, Sha256};

use super::digest::{hash_into, hex};
use super::error::StoreError;
use super::marker::Marker;
use super::progress::Phase;
use super::registry::KnownModel;

/// The folders of model files, each verified before it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    folder: PathBuf,
    hub: PathBuf,
}

/// What is in the cache under a model's name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The file, with the right hash.
    Right(PathBuf),
    /// No file, or one of another size.
    Nothing,
    /// A file of the right size with another hash; what it looked like.
    Wrong(Option<Marker>),
}

impl Cache {
    /// The folder given, else the one in the environment variable `HALITE_CACHE`, for all models. Else, for named models,
    /// `halite/models` in the user's cache folder (`$XDG_CACHE_HOME` or `~/.cache`; on Windows the local application
    /// data), and for models of the hub the folder that other programs use: `$HF_HUB_CACHE`, `$HF_HOME/hub` or
    /// `~/.cache/huggingface/hub`. They need not exist.
    ///
    /// # Errors
    /// [`StoreError::NoCacheFolder`] if all of that is unknown.
    pub fn open(folder: Option<PathBuf>) -> Result<Self, StoreError> {
        if let Some(folder) = folder.or_else(|| variable("HALITE_CACHE")) {
            return Ok(Self { hub: folder.clone(), folder });
        }
        let base = etcetera::choose_base_strategy().map_err(|_| StoreError::NoCacheFolder)?;
        let hub = variable("HF_HUB_CACHE").or_else(|| Some(hub_home()?.join("hub")));
        Ok(Self {
            folder: base.cache_dir().join("halite").join("models"),
            hub: hub.ok_or(StoreError::NoCacheFolder)?,
        })
    }

    /// The folder of named models.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder of converted weights: see [`WeightsCache`](crate::weights_cache::WeightsCache).
    pub fn weights_folder(&self) -> PathBuf {
        self.folder.join("weights")
    }

    /// The folder of models from the hub, in the hub's own layout.
    pub fn hub_folder(&self) -> &Path {
        &self.hub
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
        match self.look(model, progress)? {
            Found::Right(path) => Ok(Some(path)),
            Found::Nothing | Found::Wrong(_) => Ok(None),
        }
    }

    /// As [`Self::find`], and tells a wrong file from none.
    pub(crate) fn look(
        &self,
        model: &KnownModel,
        progress: &mut dyn FnMut(Phase),
    ) -> Result<Found, StoreError> {
        self.look_again(model, &Found::Nothing, progress)
    }

    /// Looks a second time: what was found wrong and has not changed is neither hashed nor reported again.
    pub(crate) fn look_again(
        &self,
        model: &KnownModel,
        before: &Found,
        progress: &mut dyn FnMut(Phase),
    ) -> Result<Found, StoreError> {
        let path = self.path_of(model);
        let read = |source| StoreError::Folder { action: "read", path: path.clone(), source };
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
            Err(error) => return Err(read(error)),
        };
        let metadata = file.metadata().map_err(read)?;
        if !metadata.is_file() || metadata.len() != model.file.bytes {
            return Ok(Found::Nothing);
        }
        let marker = Marker::of(&metadata, model.file.sha256);
        if marker.is_some() && marker == Marker::read(&path) {
            return Ok(Found::Right(path));
        }
        if matches!(before, Found::Wrong(Some(seen)) if marker.as_ref() == Some(seen)) {
            return Ok(Found::Wrong(marker));
        }
        let mut hasher = Sha256::new();
        let mut report = |bytes| progress(Phase::Verifying { bytes, total: model.file.bytes });
        hash_into(&mut file, &mut hasher, &mut report).map_err(read)?;
        if hex(&hasher.finalize()) != model.file.sha256 {
            tracing::warn!(file = %path.display(), "the cached file has the wrong SHA-256 and is not used");
            return Ok(Found::Wrong(marker));
        }
        if let Some(marker) = marker {
            marker.write(&path);
        }
        Ok(Found::Right(path))
    }
}

/// The folder of the hub's programs, as hf-hub finds it: `$HF_HOME`, else `~/.cache/huggingface`.
pub(crate) fn hub_home() -> Option<PathBuf> {
    let usual = || Some(etcetera::home_dir().ok()?.join(".cache").join("huggingface"));
    variable("HF_HOME").or_else(usual)
}

fn variable(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
